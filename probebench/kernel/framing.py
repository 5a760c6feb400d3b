"""Lines out of a byte stream, bounded before anything is made of them."""

from __future__ import annotations

from collections import deque

MAX_LINE_BYTES = 16_384  # the newline included


class LineBuffer:
    """Cuts fed bytes into lines; the cuts do not depend on how they are fed.

    A line that would pass MAX_LINE_BYTES ends the stream: its first
    MAX_LINE_BYTES + 1 bytes are kept, and everything after them is dropped.
    """

    def __init__(self) -> None:
        self._lines: deque[bytes] = deque()
        self._tail = bytearray()
        self._overflowed = False

    def want(self) -> int:
        """How many bytes may be read now: never past MAX_LINE_BYTES + 1 of a line."""
        return 0 if self._overflowed else MAX_LINE_BYTES + 1 - len(self._tail)

    def feed(self, data: bytes) -> None:
        """Take in the next bytes of the stream, any number of them."""
        start = 0
        while start < len(data) and not self._overflowed:
            end = data.find(b"\n", start) + 1 or len(data)
            self._tail += data[start : min(end, start + self.want())]
            start = end
            self._cut()

    def _cut(self) -> None:
        if len(self._tail) > MAX_LINE_BYTES:
            self._overflowed = True
        elif self._tail.endswith(b"\n"):
            self._lines.append(bytes(self._tail))
            self._tail.clear()

    def take(self) -> bytes | None:
        """The next complete line, newline included, or None."""
        return self._lines.popleft() if self._lines else None

    @property
    def complete(self) -> bool:
        """Whether ``take`` would give a line."""
        return bool(self._lines)

    @property
    def oversize(self) -> bool:
        """Whether the next line passes the bound; no line follows it."""
        return self._overflowed and not self._lines

    @property
    def buffered(self) -> int:
        """How many bytes are held, complete lines included."""
        return sum(map(len, self._lines)) + len(self._tail)

    def partial(self) -> bytes:
        """The unterminated rest, at most MAX_LINE_BYTES + 1 bytes."""
        return bytes(self._tail)
