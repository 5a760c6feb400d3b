"""The transport control: a known defocus probe, then the estimator, then submit.

It shows that the channel, the camera and the tools work; it is neither a
language model nor a measure of what an agent can do.  Each decision follows
from the current request alone, so that a session which was interrupted ends
as it would have.
"""

from __future__ import annotations

from probebench.clients.optical import Agent, Message, connect

PROBE_OPD_NM = [80.0, 0.0, 0.0, 0.0, 0.0, 0.0]
ZERO_OPD_NM = [0.0] * 6


def play(agent: Agent) -> Message:
    """Play a session to its end; returns the final acknowledgement."""
    message = agent.current
    while not message.is_final:
        message = _answer(agent, message)
    return message


def _answer(agent: Agent, message: Message) -> Message:
    if message.fit is not None:
        return agent.submit(message.fit["suggested_command_opd_nm"])
    if message.command_opd_nm != PROBE_OPD_NM and "expose" in message.available:
        return agent.expose(PROBE_OPD_NM)
    if "estimate" in message.available:
        return agent.estimate()
    return agent.submit(ZERO_OPD_NM)


def main() -> None:
    """Play over the standard streams."""
    with connect() as agent:
        play(agent)


if __name__ == "__main__":
    main()
