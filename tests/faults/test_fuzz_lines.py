"""Any bytes from a client: an action, one typed rejection, or the oversize end."""

from __future__ import annotations

import copy
import json
import os
import re
import typing
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from probebench.kernel.canonical import Json, decode, encode
from probebench.kernel.episode import Action, Ask, Episode, Final, Rejection, Task, Value
from probebench.kernel.errors import ActionRejectedError
from probebench.kernel.framing import MAX_LINE_BYTES, LineBuffer
from probebench.wire.optical import RejectionCode
from tests.conformance import Case
from tests.environments.test_conformance import CASES
from tests.faults.fuzz import is_sentence, line, pieces
from tests.faults.share import Count, share
from tests.rigs import NONCE

LINES = int(os.environ.get("PROBEBENCH_FUZZ", "6000"))
PER_STREAM = 24
STATES_PER_CASE = 3
CODE = re.compile(r"[a-z]+(_[a-z0-9]+)*")
Outcome = tuple[list[bytes], bool, bytes]


class Fuzzed:
    """An episode that awaits an answer, with a lawful line for where it stands."""

    def __init__(self, case: Case, turns: int) -> None:
        """turns: how many are played before."""
        self.case = case
        self.episode = _played(case, turns)
        ask = self.episode.pending()
        assert isinstance(ask, Ask)
        self.ask = ask
        self.lawful: dict[str, Json] = json.loads(case.reply(ask, decode(encode(ask.body))))
        self.state = self.episode.state_digest()

    def verdict(self, data: bytes) -> str:
        """An action's name after a "+", or the code of the rejection."""
        try:
            action = self.episode.parse(self.ask, data)
        except ActionRejectedError as error:
            return self._code_of(error)
        assert isinstance(action, Action)
        encode(action.fields)
        return f"+{action.name}"

    def _code_of(self, error: ActionRejectedError) -> str:
        assert CODE.fullmatch(error.code), error.code
        assert is_sentence(error.message), error.message
        self.episode.cost(Rejection(error.code, error.message, error.detail))
        return error.code


def _played(case: Case, turns: int) -> Episode:
    environment = case.environment()
    episode = environment.open(case.study(), NONCE)
    for _ in range(turns):
        _play_on(case, episode)
    return episode


def _play_on(case: Case, episode: Episode) -> None:
    effect = episode.pending()
    if isinstance(effect, Task):
        value = {"manifest_sha256": "0" * 64} if effect.hosted else case.environment().run(effect)
        episode.apply(Value(value))
        return
    assert isinstance(effect, Ask)
    try:
        action = episode.parse(effect, case.reply(effect, decode(encode(effect.body))))
    except ActionRejectedError as error:
        episode.apply(Rejection(error.code, error.message, error.detail))
    else:
        episode.apply(action)


def played_to_the_end(case: Case, episode: Episode) -> list[bytes]:
    """All that a client would be sent from here on."""
    sent = []
    while not isinstance(effect := episode.pending(), Final):
        sent.append(encode(effect.body if isinstance(effect, Ask) else effect.spec))
        _play_on(case, episode)
    return [*sent, encode([effect.submitted, effect.cause, effect.evidence, effect.farewell])]


def turns_with_a_lawful_answer(case: Case) -> Iterator[int]:
    """After how many turns the client that plays the case sends an action."""
    episode, turns = case.environment().open(case.study(), NONCE), 0
    while not isinstance(effect := episode.pending(), Final):
        if isinstance(effect, Ask):
            with suppress(ActionRejectedError):
                episode.parse(effect, case.reply(effect, decode(encode(effect.body))))
                yield turns
        _play_on(case, episode)
        turns += 1


STATES = [
    (name, turns)
    for name, case in CASES.items()
    for turns in share(list(turns_with_a_lawful_answer(case)), STATES_PER_CASE)
]


def received(parts: Iterable[bytes]) -> Outcome:
    """What a channel makes of a stream, however it arrives."""
    buffer, lines = LineBuffer(), []
    for part in parts:
        buffer.feed(part)
        while (found := buffer.take()) is not None:
            lines.append(found)
    return lines, buffer.oversize, buffer.partial()


def bytewise(data: bytes) -> Iterable[bytes]:
    return (data[i : i + 1] for i in range(len(data)))


def check_stream(fuzzed: Fuzzed, data: bytes, chance: Random) -> Counter[str]:
    """Feed one stream in three ways and read each of its lines."""
    whole = received([data])
    assert received(bytewise(data)) == whole
    assert received(pieces(chance, data)) == whole
    lines, oversize, partial = whole
    assert all(len(found) <= MAX_LINE_BYTES for found in lines)
    assert len(partial) <= MAX_LINE_BYTES + 1
    verdicts = Counter(map(fuzzed.verdict, lines))
    # What is no line reaches no parser; where a process ends, its rest is one.
    fuzzed.verdict(partial)
    verdicts["oversize"] += oversize
    assert fuzzed.episode.state_digest() == fuzzed.state, data
    return verdicts


def fuzz(fuzzed: Fuzzed, count: int, seed: int) -> Counter[str]:
    """Feed hostile streams to one episode; returns how often each verdict came."""
    chance, verdicts = Random(seed), Counter[str]()
    while verdicts.total() < count:
        data = b"".join(line(chance, fuzzed.lawful) for _ in range(PER_STREAM))
        verdicts += check_stream(fuzzed, data, chance)
    return verdicts


@pytest.mark.parametrize(("name", "turns"), STATES)
def test_hostile_lines_give_an_action_a_rejection_or_the_oversize_end(
    name: str, turns: int, count: Count
) -> None:
    fuzzed = Fuzzed(CASES[name], turns)
    untouched = copy.deepcopy(fuzzed.episode)
    verdicts = fuzz(fuzzed, LINES // len(STATES) + 1, seed=turns)
    count("fuzzed lines", verdicts.total(), name, f"after {turns} turns: {dict(verdicts)}")
    # What was read left nothing behind: not in a generator, not in a camera.
    played = played_to_the_end(fuzzed.case, fuzzed.episode)
    assert played == played_to_the_end(fuzzed.case, untouched)
    # The fuzz reaches what it is for.
    rejections = {v for v in verdicts if not v.startswith("+")} - {"oversize"}
    assert any(v.startswith("+") for v in verdicts)
    assert len(rejections) >= 8
    if name.startswith("optical"):
        assert rejections <= set(typing.get_args(RejectionCode))


@pytest.mark.parametrize("name", CASES)
def test_whatever_hypothesis_thinks_of_is_an_action_or_a_rejection(name: str) -> None:
    fuzzed = Fuzzed(CASES[name], next(turns_with_a_lawful_answer(CASES[name])))
    near = st.randoms(use_true_random=False).map(lambda chance: line(chance, fuzzed.lawful))
    streams = st.lists(near | st.binary(max_size=80), max_size=5).map(b"".join)

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(streams, st.integers(0, 2**32))
    def check(data: bytes, seed: int) -> None:
        check_stream(fuzzed, data, Random(seed))

    check()


# -- broken framing and parsing, which the checks above must catch ----------------------------


class CutsAtEveryFeed(LineBuffer):
    """Broken on purpose: what a read brings is taken for a line."""

    def feed(self, data: bytes) -> None:
        super().feed(data if data.endswith(b"\n") else data + b"\n")


class NoBound(LineBuffer):
    """Broken on purpose: a line of any length is a line."""

    def _cut(self) -> None:
        if self._tail.endswith(b"\n"):
            self._lines.append(bytes(self._tail))
            self._tail.clear()


@pytest.fixture
def toy() -> Fuzzed:
    return Fuzzed(CASES["thermometer"], 1)


@pytest.mark.parametrize("broken", [CutsAtEveryFeed, NoBound])
def test_a_broken_framing_is_caught(
    broken: type[LineBuffer], toy: Fuzzed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{__name__}.LineBuffer", broken)
    with pytest.raises(AssertionError):
        fuzz(toy, 4000, seed=1)


def test_a_parser_that_changes_the_state_is_caught(
    toy: Fuzzed, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine = toy.episode.parse

    def counts(ask: Ask, data: bytes) -> Action:
        vars(toy.episode)["acted"] += 1
        return genuine(ask, data)

    monkeypatch.setattr(toy.episode, "parse", counts)
    with pytest.raises(AssertionError):
        fuzz(toy, 100, seed=1)


def test_the_standard_parser_alone_is_caught(toy: Fuzzed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.toys.thermometer.parse_object", json.loads)
    with pytest.raises((ValueError, TypeError, AssertionError, RecursionError)):
        fuzz(toy, 4000, seed=1)
