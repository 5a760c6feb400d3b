"""``python -m probebench.agent_session``: the session command by itself."""

from __future__ import annotations

import typer

from probebench.cli import run, session

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
app.command()(session)

if __name__ == "__main__":
    run(app)
