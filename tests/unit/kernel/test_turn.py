"""Records and their chain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probebench.kernel import turn as records
from probebench.kernel.canonical import decode, encode, sha256_hex
from probebench.kernel.episode import Ask, Fault, FaultKind, Final, Launch, Task

ASK = Ask("ask-1", "agent", Launch.SHARED, {"kind": "request"}, 5.0, "witness")
NONCE = bytes(32)


def chained(*documents: dict[str, int]) -> list[bytes]:
    chain = records.Chain("0" * 64)
    return [chain.link(document) for document in documents]


def test_following_a_chain_gives_back_the_documents_and_the_head() -> None:
    data = chained({"turn": 1}, {"turn": 2})
    chain = records.Chain("0" * 64)
    assert [chain.follow(item) for item in data] == [{"turn": 1}, {"turn": 2}]
    assert chain.head == sha256_hex(data[-1])


def follow_both(first: bytes, second: bytes) -> None:
    chain = records.Chain("0" * 64)
    chain.follow(first)
    chain.follow(second)


@given(st.integers(0, 10_000), st.integers(1, 255))
def test_any_changed_byte_of_a_record_breaks_the_chain_there_or_after(
    index: int, flip: int
) -> None:
    first, second = chained({"turn": 1, "value": 12345}, {"turn": 2})
    position = index % len(first)
    changed = first[:position] + bytes([first[position] ^ flip]) + first[position + 1 :]
    with pytest.raises(ValueError, match=r"."):
        follow_both(changed, second)


def test_a_removed_record_breaks_the_chain() -> None:
    _, second = chained({"turn": 1}, {"turn": 2})
    with pytest.raises(ValueError, match="previous_sha256"):
        records.Chain("0" * 64).follow(second)


def test_a_record_without_a_link_is_none() -> None:
    with pytest.raises(ValueError, match="links"):
        records.Chain("0" * 64).follow(encode({"turn": 1}))


@given(st.binary(max_size=200), st.sampled_from(FaultKind), st.none() | st.integers(0, 255))
def test_an_answer_comes_back_from_its_record(
    data: bytes, kind: FaultKind, code: int | None
) -> None:
    line = data.replace(b"\n", b"") + b"\n"
    for answer in (records.Answer(line), records.Answer(data, Fault(kind, code))):
        document = decode(encode(records.answer_document(3, ASK, answer)))
        assert records.answer_from(document, Launch.SHARED) == answer


@pytest.mark.parametrize("data", [b"", b"no newline", b"two\nlines\n", b"x" * 16_384 + b"\n"])
def test_a_recorded_line_that_no_channel_lets_through_is_refused(data: bytes) -> None:
    document = records.answer_document(3, ASK, records.Answer(data))
    with pytest.raises(ValueError, match="line"):
        records.answer_from(document, Launch.SHARED)
    if len(data) <= 16_384:
        assert records.answer_from(document, Launch.PER_ASK).data == data


@pytest.mark.parametrize(
    "timing",
    [
        None,
        "soon",
        {},
        {"driver_s": 1.0},
        {"driver_s": 1.0, "task_s": -0.5},
        {"driver_s": 1.0, "task_s": "x"},
        {"driver_s": 1.0, "task_s": 0.0, "more_s": 1.0},
    ],
)
def test_a_response_carries_exactly_its_two_durations(timing: object) -> None:
    document = {"format": records.RESPONSE_FORMAT, "previous_sha256": "0" * 64, "timing": timing}
    with pytest.raises(ValueError, match="timing"):
        records.Chain("0" * 64).follow(encode(document))
    good = {**document, "timing": {"driver_s": 1.0, "task_s": 0.0}}
    records.Chain("0" * 64).follow(encode(good))


@pytest.mark.parametrize("bad", ["not base64!", "AAA", "QQ==\n"])
def test_base64_that_is_none_is_refused(bad: str) -> None:
    document = records.answer_document(3, ASK, records.Answer(b"x"))
    with pytest.raises(ValueError, match="base64"):
        records.answer_from({**document, "received_base64": bad}, Launch.SHARED)


def test_the_witness_goes_into_asks_and_farewells_that_have_a_place_for_it() -> None:
    assert records.stamped(ASK, "d") == {"kind": "request", "witness": "d"}
    plain = Ask("ask-1", "agent", Launch.PER_ASK, {"kind": "request"}, 5.0)
    assert records.stamped(plain, "d") == {"kind": "request"}
    final = Final(submitted=True, cause="done", evidence=None, farewell={"a": 1}, witness="w")
    assert records.stamped(final, "d") == {"a": 1, "w": "d"}
    assert records.stamped(Final(submitted=True, cause="done", evidence=None), "d") is None
    assert records.stamped(Task("t", "k", {}), "d") is None


def test_request_identifiers_differ_and_depend_on_the_nonce() -> None:
    names = [records.request_id(NONCE, index) for index in range(50)]
    assert len(set(names)) == 50
    assert records.request_id(bytes([1]) * 32, 0) not in names
    assert all(len(name) == 32 for name in names)


def test_the_root_depends_on_the_nonce_and_on_the_study() -> None:
    roots = {
        records.chain_root(nonce, study) for nonce in (NONCE, b"x" * 32) for study in (b"a", b"b")
    }
    assert len(roots) == 4


@given(st.integers(1, 200_000))
def test_record_names_follow_the_one_pattern(turn: int) -> None:
    for name in (records.input_name(turn), records.fault_name(turn), records.response_name(turn)):
        match = records.TURN_NAME.fullmatch(name)
        assert match is not None
        assert int(match[1]) == turn


def test_a_saved_value_belongs_to_its_own_task_alone() -> None:
    task = Task("fit-1", "fit", {"frames": [1.5]})
    saved = records.SavedValue.of(task, {"estimate": 3})
    assert saved.belongs_to(task)
    assert not saved.belongs_to(Task("fit-1", "fit", {"frames": [1.25]}))
    assert not saved.belongs_to(Task("fit-2", "fit", {"frames": [1.5]}))
