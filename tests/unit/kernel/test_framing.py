"""Lines are cut at the same places however their bytes arrive."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import example, given
from hypothesis import strategies as st

from probebench.kernel.framing import MAX_LINE_BYTES, LineBuffer

Outcome = tuple[list[bytes], bool, bytes]


def outcome(pieces: Iterable[bytes], buffer: LineBuffer | None = None) -> Outcome:
    buffer = LineBuffer() if buffer is None else buffer
    lines: list[bytes] = []
    for piece in pieces:
        buffer.feed(piece)
        while (line := buffer.take()) is not None:
            lines.append(line)
    return lines, buffer.oversize, buffer.partial()


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


LONG = st.integers(MAX_LINE_BYTES - 3, MAX_LINE_BYTES + 3).map(lambda n: b"x" * n)
STREAMS = st.lists(st.one_of(st.binary(max_size=40), st.just(b"\n"), LONG), max_size=6).map(
    b"".join
)


@given(STREAMS, st.lists(st.integers(1, 20_000), max_size=8))
@example(b"x" * (MAX_LINE_BYTES - 1) + b"\n{}\n", [])
@example(b"a\n" + b"x" * MAX_LINE_BYTES + b"\nb\n", [])
def test_the_outcome_is_the_same_whole_and_byte_by_byte_and_in_any_pieces(
    data: bytes, cuts: list[int]
) -> None:
    pieces, start = [], 0
    for cut in cuts:
        pieces.append(data[start : start + cut])
        start += cut
    whole = outcome([data])
    assert outcome(bytewise(data)) == whole
    assert outcome([*pieces, data[start:]]) == whole


class ForgetsTheRest(LineBuffer):
    """Broken on purpose: drops what follows a newline in the same read."""

    def feed(self, data: bytes) -> None:
        super().feed(data[: data.find(b"\n") + 1 or len(data)])


def test_a_buffer_that_drops_bytes_after_a_newline_is_caught() -> None:
    data = b"one\ntwo\n"
    assert outcome([data], ForgetsTheRest()) != outcome(bytewise(data), ForgetsTheRest())


def test_a_line_of_exactly_the_bound_is_a_line() -> None:
    line = b"x" * (MAX_LINE_BYTES - 1) + b"\n"
    assert outcome([line]) == ([line], False, b"")


def test_one_byte_more_than_the_bound_is_oversize_even_if_it_is_the_newline() -> None:
    lines, oversize, partial = outcome([b"x" * MAX_LINE_BYTES + b"\n"])
    assert (lines, oversize, len(partial)) == ([], True, MAX_LINE_BYTES + 1)


def test_the_bound_without_a_newline_is_not_oversize_yet() -> None:
    assert outcome([b"x" * MAX_LINE_BYTES])[1] is False


def test_no_more_is_wanted_than_one_byte_past_the_bound_of_a_line() -> None:
    buffer = LineBuffer()
    assert buffer.want() == MAX_LINE_BYTES + 1
    buffer.feed(b"x" * 1000)
    assert buffer.want() == MAX_LINE_BYTES + 1 - 1000
    buffer.feed(b"\nabc")
    assert buffer.want() == MAX_LINE_BYTES + 1 - 3
    buffer.feed(b"x" * buffer.want())
    assert buffer.want() == 0


def test_a_flood_is_kept_only_up_to_the_bound() -> None:
    buffer = LineBuffer()
    for _ in range(100):
        buffer.feed(b"x" * 10_000)
    assert buffer.oversize
    assert buffer.buffered == MAX_LINE_BYTES + 1


def test_lines_before_an_oversize_one_are_given_first() -> None:
    buffer = LineBuffer()
    buffer.feed(b"one\n" + b"x" * (MAX_LINE_BYTES + 1) + b"\nlost\n")
    before = (buffer.complete, buffer.oversize)
    line = buffer.take()
    after = (buffer.complete, buffer.oversize)
    assert (before, line, after) == ((True, False), b"one\n", (False, True))
    assert buffer.take() is None
