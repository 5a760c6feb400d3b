"""One suite over every environment: what the kernel may rely on."""

from __future__ import annotations

import base64
import json
import re
import shutil
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probebench.app.rig import Rig
from probebench.app.session import Outcome, run_session
from probebench.app.verify import verify_folder
from probebench.kernel.canonical import Json
from probebench.kernel.environment import Environment
from probebench.kernel.episode import Ask, Episode, Fault, FaultKind, Final, Rejection, Task, Value
from probebench.kernel.errors import ActionRejectedError
from probebench.kernel.study import Study
from tests.rigs import (
    NONCE,
    KilledError,
    RepliesInProcess,
    Reply,
    Steps,
    constant_rig,
    folder_bytes,
)

GARBAGE = (
    b"\n",
    b"{}\n",
    b"[1, 2]\n",
    b'{"a": 1, "a": 2}\n',
    b"\xff\xfe\n",
    b'{"x": NaN}\n',
    b'"text"\n',
)


@dataclass(frozen=True)
class Case:
    """One environment under one configuration, with a client that plays it."""

    config: Json
    reply: Reply

    def environment(self) -> Environment:
        return constant_rig().registry[self.config["environment"]].environment

    def study(self) -> Study:
        return Study(self.config, {}, {})

    def run(self, folder: Path, rig: Rig | None = None, *, resume: bool = False) -> Outcome:
        rig = constant_rig() if rig is None else rig
        return run_session(rig, folder, self.config, RepliesInProcess(self.reply), resume=resume)


Visit = Callable[[Episode, Ask | Task], None]


def play(case: Case, visit: Visit) -> Final:
    """Drive an episode by hand, without journal, and visit every state."""
    environment = case.environment()
    episode = environment.open(case.study(), NONCE)
    while not isinstance(effect := episode.pending(), Final):
        visit(episode, effect)
        if isinstance(effect, Task):
            value = {"manifest_sha256": "0" * 64} if effect.hosted else environment.run(effect)
            episode.apply(Value(value))
            continue
        line = case.reply(effect, json.loads(json.dumps(effect.body)))
        try:
            episode.apply(episode.parse(effect, line))
        except ActionRejectedError as error:
            episode.apply(Rejection(error.code, error.message, error.detail))
    return effect


def check_pending_is_idempotent(case: Case) -> None:
    def visit(episode: Episode, effect: Ask | Task) -> None:
        before = episode.state_digest()
        assert episode.pending() == effect
        assert episode.state_digest() == before

    play(case, visit)


def check_keys_name_one_effect_each(case: Case) -> None:
    seen: dict[str, Json] = {}

    def visit(episode: Episode, effect: Ask | Task) -> None:
        content = effect.body if isinstance(effect, Ask) else effect.spec
        assert seen.setdefault(effect.key, content) == content, effect.key

    play(case, visit)
    assert seen


def check_parse_and_cost_are_pure(case: Case) -> None:
    def visit(episode: Episode, effect: Ask | Task) -> None:
        if isinstance(effect, Task):
            return
        before, pending = episode.state_digest(), episode.pending()
        for line in (*GARBAGE, case.reply(effect, effect.body)):
            try:
                cause: Any = episode.parse(effect, line)
            except ActionRejectedError as error:
                cause = Rejection(error.code, error.message, error.detail)
            assert episode.cost(cause) == episode.cost(cause)
            assert episode.state_digest() == before
            assert episode.pending() == pending

    play(case, visit)


def check_garbage_is_rejected(case: Case) -> None:
    def visit(episode: Episode, effect: Ask | Task) -> None:
        if isinstance(effect, Task):
            return
        for line in GARBAGE:
            try:
                episode.parse(effect, line)
            except ActionRejectedError as error:
                unexplained = not (error.code and error.message)
            else:
                raise AssertionError(f"{line!r} was taken for an action")
            assert not unexplained, line

    play(case, visit)


def check_a_fault_ends_or_moves_on(case: Case) -> None:
    """From every ask, each kind of fault leads to a state that can go on."""
    turns = 0

    def count(episode: Episode, effect: Ask | Task) -> None:
        nonlocal turns
        turns += 1

    play(case, count)
    for kind in FaultKind:
        for turn in range(turns):
            _fault_at(case, turn, kind)


def _fault_at(case: Case, turn: int, kind: FaultKind) -> None:
    seen = 0

    class StopError(Exception):
        pass

    def visit(episode: Episode, effect: Ask | Task) -> None:
        nonlocal seen
        if seen == turn and isinstance(effect, Ask) and _may_happen(effect, kind):
            episode.apply(Fault(kind, 1 if kind is FaultKind.ADAPTER else None))
            episode.pending()
            raise StopError
        seen += 1

    try:
        play(case, visit)
    except StopError:
        return


def _may_happen(ask: Ask, kind: FaultKind) -> bool:
    if kind is FaultKind.SUPERSEDED:
        return not ask.reissue
    if kind is FaultKind.ABSENT:
        return ask.optional
    return kind is not FaultKind.ADAPTER or ask.launch.value == "per_ask"


def check_sessions_repeat_bytewise(case: Case, folder: Path) -> None:
    case.run(folder / "a")
    case.run(folder / "b")
    assert folder_bytes(folder / "a") == folder_bytes(folder / "b")


def check_verifies(case: Case, folder: Path) -> None:
    outcome = case.run(folder / "a")
    verdict = verify_folder(
        constant_rig(), folder / "a", expect_head=outcome.head_sha256, refit=True
    )
    assert verdict.verified, verdict.failure


def check_resumes_from_every_durable_step(case: Case, folder: Path, stride: int = 1) -> int:
    """Die before each durable step, resume, and compare with a whole run.

    Returns the number of steps.  Asks that are superseded rather than sent
    again may lengthen a session; such a case is compared by its verdict.
    """
    whole = Steps()
    case.run(folder / "whole", constant_rig(whole))
    expected = folder_bytes(folder / "whole")
    for fatal in range(0, len(whole.seen), stride):
        cut = folder / "cut"
        try:
            case.run(cut, constant_rig(Steps(fatal)))
        except KilledError:
            pass
        else:
            raise AssertionError(f"step {fatal} was not reached")
        case.run(cut, resume=True)
        if not supersedes(case):
            assert folder_bytes(cut) == expected, whole.seen[fatal]
        verdict = verify_folder(constant_rig(), cut)
        assert verdict.verified, (whole.seen[fatal], verdict.failure)
        shutil.rmtree(cut)
    return len(whole.seen)


def supersedes(case: Case) -> bool:
    """Whether an ask that a dead driver may have sent is superseded, so that a session
    may lawfully end otherwise than one that was never cut short."""
    found = False

    def visit(episode: Episode, effect: Ask | Task) -> None:
        nonlocal found
        found = found or (isinstance(effect, Ask) and not effect.reissue)

    play(case, visit)
    return found


def public_messages(case: Case, folder: Path) -> tuple[list[bytes], Outcome]:
    """All that a client is sent in one session, and its end."""
    clients = RepliesInProcess(case.reply)
    outcome = run_session(constant_rig(), folder, case.config, clients)
    return clients.messages, outcome


# -- secrecy -------------------------------------------------------------------

LONG = 10  # digits or characters that do not stand in a message by accident


def check_no_secret_is_public(case: Case, folder: Path) -> None:
    messages, outcome = public_messages(case, folder / "a")
    evaluation = outcome.evaluator["evaluation"]
    secrets = list(case.environment().secrets(case.study(), evaluation))
    # A turn record holds nothing hidden either, so that a digest of one tells nothing.
    turns = [path.read_bytes() for path in sorted((folder / "a" / "turns").iterdir())]
    leaks = [leak for public in (*messages, *turns) for leak in leaks_in(public, secrets)]
    assert leaks == []


def leaks_in(message: bytes, secrets: Sequence[Json]) -> list[str]:
    """Hidden values in a public message: parsed values exactly, long spellings as substrings,
    and whatever stands in a picture."""
    values = list(_leaves(json.loads(message)))
    texts = [message.decode(), *map(_picture_text, _pictures(json.loads(message)))]
    found = []
    for secret in secrets:
        if any(type(value) is type(secret) and value == secret for value in values):
            found.append(f"the value {secret!r}")
        spelled = secret if isinstance(secret, str) else repr(secret)
        digits = re.sub(r"\D", "", spelled)
        if max(len(digits), len(spelled) if isinstance(secret, str) else 0) >= LONG:
            found += [f"the text {spelled}" for text in texts if spelled in text]
    return found


def _leaves(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _pictures(value: Json) -> Iterator[bytes]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "png_base64":
                yield base64.b64decode(item)
            else:
                yield from _pictures(item)


def _picture_text(png: bytes) -> str:
    """All bytes of a PNG file as text: its chunks, and its data unpacked."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    position, data, text, kinds = 8, b"", png.decode("latin-1"), []
    while position < len(png):
        size, kind = struct.unpack(">I4s", png[position : position + 8])
        kinds.append(kind)
        if kind == b"IDAT":
            data += png[position + 8 : position + 8 + size]
        position += size + 12
    assert kinds == [b"IHDR", b"PLTE", *[b"IDAT"] * (len(kinds) - 3), b"IEND"]
    return text + zlib.decompress(data).decode("latin-1")
