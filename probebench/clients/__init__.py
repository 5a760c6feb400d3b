"""For agent authors: connect to a session, read requests, reply.

from probebench.clients import connect

with connect() as agent:
    reply = agent.expose([80, 0, 0, 0, 0, 0])
    print(reply.frame_e.max())  # goes to standard error
    agent.submit([0, 0, 0, 0, 0, 0])
"""

from probebench.clients.connection import Connection, DriverGoneError, standard_streams
from probebench.clients.optical import Agent, Message, Rejected, connect

__all__ = [
    "Agent",
    "Connection",
    "DriverGoneError",
    "Message",
    "Rejected",
    "connect",
    "standard_streams",
]
