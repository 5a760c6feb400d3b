"""Run the scripted transport control as a program that starts the driver.

The driver speaks over its own standard streams, and this program is at their
other end, as any program in any language could be.

    python scripts/run_agent_protocol_control.py --config C --output DIR [--resume]

Exits with the driver's exit code.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from contextlib import suppress

from probebench.clients import Agent, Connection, DriverGoneError
from probebench.clients.scripted import play


def main() -> int:
    """Start the driver, play, and wait for its end."""
    parser = argparse.ArgumentParser(description="Run the scripted transport control.")
    parser.add_argument("--config", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    command = [
        sys.executable,
        "-m",
        "probebench.agent_session",
        "--config",
        given.config,
        "--output",
        given.output,
    ]
    if given.resume:
        command.append("--resume")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        if driver.stdin is None or driver.stdout is None:
            raise RuntimeError("the driver was started without pipes")
        # If it ends early, its exit code and its own words say why.
        with suppress(DriverGoneError, KeyboardInterrupt):
            play(Agent(Connection(driver.stdout, driver.stdin)))
        driver.stdin.close()
        return driver.wait()


if __name__ == "__main__":
    raise SystemExit(main())
