"""A client's own copy of what it was sent, as a witness against the folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from probebench.app.drive import Observer, TurnSeen
from probebench.kernel import turn as records
from probebench.kernel.budget import Charge
from probebench.kernel.canonical import digest, sha256_hex
from probebench.kernel.errors import ArtifactError, OperatorError
from probebench.kernel.strictjson import parse_document

MAX_LINE_BYTES = 64 * 1024 * 1024


def read_transcript(path: Path) -> list[str]:
    """The digest of each message in a file of JSON lines, in order.

    A message counts by its content: spaces and the order of keys do not matter.
    Raises OperatorError.
    """
    try:
        with path.open("rb") as file:
            digests = [_digest(line, number) for number, line in enumerate(file, start=1)]
    except OSError as error:
        raise OperatorError(
            f"cannot read the transcript {str(path)!r}: {error.strerror}; give a file of JSON lines"
        ) from None
    if not digests:
        raise OperatorError(f"the transcript {str(path)!r} holds no message; give another file")
    return digests


def _digest(line: bytes, number: int) -> str:
    subject = f"line {number} of the transcript"
    return digest(parse_document(line, subject, max_bytes=MAX_LINE_BYTES, refuse=_refused))


def _refused(subject: str, sentence: str) -> OperatorError:
    return OperatorError(f"{subject} is no message ({sentence}); remove a line that was cut off")


class Sent:
    """Every message of a session as it is replayed, by the record that holds it."""

    def __init__(self, first: bytes, observer: Observer) -> None:
        """first: the message of session.json.  observer: told of every turn as well."""
        self._messages: list[tuple[str, str]] = []  # record and digest
        self._observer = observer
        self._add(records.SESSION, first)

    def opened(self, charge: Charge) -> None:
        """Pass it on."""
        self._observer.opened(charge)

    def turn(self, seen: TurnSeen) -> None:
        """Take in what a turn sends, and pass it on."""
        self._add(records.response_name(seen.turn), seen.message)
        self._observer.turn(seen)

    def _add(self, record: str, message: bytes) -> None:
        if message:
            self._messages.append((record, sha256_hex(message)))

    def compare(self, transcript: Sequence[str]) -> str:
        """Find every message of a transcript here, in its order.

        Some may be missing from it, and one that was sent again stands twice.
        Returns what was seen.  Raises ArtifactError naming the record whose
        message should have been received.
        """
        index = {found: position for position, (_, found) in enumerate(self._messages)}
        last = -1
        for number, received in enumerate(transcript, start=1):
            position = index.get(received, -1)
            if position < max(last, 0):
                raise ArtifactError(self._after(last), _not_sent(number, position))
            last = position
        found = len({*transcript})
        return f"{found} of {len(self._messages)} messages are in the transcript, as they were sent"

    def _after(self, position: int) -> str:
        names = [record for record, _ in self._messages]
        return names[min(position + 1, len(names) - 1)] if names else records.SESSION


def _not_sent(number: int, position: int) -> str:
    if position < 0:
        return f"line {number} of the transcript is no message of this session"
    return f"line {number} of the transcript was sent before the line above it"
