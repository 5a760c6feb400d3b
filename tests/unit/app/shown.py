"""Small sessions to look at, with a client that is hostile where it can be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from probebench.app.html import session_page
from probebench.app.session import run_session
from probebench.app.show import read_session, report_of, sections_of
from probebench.environments.optical import config as configuration
from probebench.kernel.canonical import Json, encode
from probebench.kernel.episode import Ask
from probebench.kernel.report import RecordedSession
from tests.rigs import KilledError, RepliesInProcess, constant_rig

Line = Callable[[dict[str, Any]], bytes]

PROBES_OPD_NM = [
    [80.0, 0.0, 0.0, 0.0, 0.0, 0.0],
    [0.0, 0.0, 20.0, -15.5, 0.0, 30.0],
    [0.0, -120.5, 0.0, 0.0, 12.0, 199.9],
]
# Markup, a terminal's escape, a mark that turns the direction of text, and no JSON.
ATTACK = (
    '"></td><script>alert(1)</script><img src=x onerror=alert(2)>'
    "<!-- &lt;b&gt; \x1b[31m \u202e \x00 http://example.invalid/"
)


def small_config(requests: int = 12) -> Json:
    """A development configuration that costs milliseconds, with fixed seeds."""
    config = configuration.fresh_config(lambda count: bytes(range(count)), "tool_assisted", "shown")
    return config | {
        "pupil": {"samples": 32, "obscuration": 0.2},
        "detector": {**config["detector"], "pixels": 16},
        "budget": {"exposures": 6, "estimates": 3, "requests": requests},
    }


def says(name: str, **fields: Json) -> Line:
    """An action."""
    return lambda message: encode(
        {
            "protocol": message["protocol"],
            "request_id": message["request_id"],
            "action": name,
            **fields,
        }
    )


def attacks(_message: dict[str, Any]) -> bytes:
    """A line that is rejected and should not be able to do more."""
    return ATTACK.encode() + b"\xff\n"


def attacks_in_a_field(message: dict[str, Any]) -> bytes:
    """Well-formed JSON whose action is markup."""
    return says(ATTACK)(message)


def submits_the_suggestion(message: dict[str, Any]) -> bytes:
    """The end of an assisted session."""
    fit = message["last_result"]["fit"]
    return says("submit", command_opd_nm=fit["suggested_command_opd_nm"])(message)


FINISHED: tuple[Line, ...] = (
    says("expose", command_opd_nm=PROBES_OPD_NM[0]),
    attacks,
    says("expose", command_opd_nm=PROBES_OPD_NM[1]),
    attacks_in_a_field,
    says("expose", command_opd_nm=PROBES_OPD_NM[2]),
    says("estimate"),
    says("estimate"),
    submits_the_suggestion,
)


def play(folder: Path, lines: tuple[Line, ...], requests: int = 12) -> Path:
    """Play a session; it stays unfinished where the lines end before it does."""

    def reply(_ask: Ask, message: dict[str, Any]) -> bytes:
        if len(clients.messages) > len(lines):
            raise KilledError
        return lines[len(clients.messages) - 1](message)

    clients = RepliesInProcess(reply)
    with suppress(KilledError):
        run_session(constant_rig(), folder, small_config(requests), clients)
    return folder


def page_of(session: RecordedSession) -> str:
    """The page of a session."""
    rig = constant_rig()
    return session_page(session, report_of(rig, session), sections_of(rig, session))


def with_fit(session: RecordedSession, **changes: Json) -> RecordedSession:
    """The session with other fields in every fit that was shown."""
    turns = []
    for turn in session.turns:
        message = turn.response["message"]
        result = message.get("last_result")
        if result is not None and result["kind"] == "estimated":
            shown = {**result, "fit": result["fit"] | changes}
            changed = {**turn.response, "message": message | {"last_result": shown}}
            turns.append(replace(turn, response=changed))
        else:
            turns.append(turn)
    return replace(session, turns=turns)


def finished_session(folder: Path) -> RecordedSession:
    """The session of FINISHED, played in a new folder."""
    return read_session(play(folder, FINISHED))


class Page(HTMLParser):
    """A page as a browser reads it: its elements, their attributes, its words."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.comments: list[str] = []
        self._open = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        if self._open != "style":
            self.words += f"{data}\n"

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_comment(self, data: str) -> None:
        self.comments.append(data)

    def all(self, tag: str, class_: str | None = None) -> list[dict[str, str | None]]:
        """The attributes of every element of a tag, and of a class if one is given."""
        return [
            attributes
            for name, attributes in self.elements
            if name == tag and (class_ is None or class_ in (attributes.get("class") or "").split())
        ]
