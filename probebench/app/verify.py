"""Verify a folder from its bytes: membership, hashes, chain, replay, evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from probebench.app import freeze, hosted, members, seal
from probebench.app.drive import Driven, End, drive
from probebench.app.journal import Journal, ReadOnlyRecords
from probebench.app.registry import entry_of
from probebench.app.rig import Rig
from probebench.app.saved_values import SavedValues, value_check
from probebench.app.session import session_terms
from probebench.app.signature import SIGNATURE
from probebench.app.transcript import Sent
from probebench.app.witnesses import SignedBy, Witnesses, require_signature
from probebench.host import runtime, snapshot
from probebench.host.folder import is_folder
from probebench.host.store import Store
from probebench.kernel import turn as records
from probebench.kernel.canonical import Json, encode, sha256_hex
from probebench.kernel.environment import Environment, Part
from probebench.kernel.episode import Task
from probebench.kernel.errors import ArtifactError, ConfigError, OperatorError, UnfinishedError
from probebench.kernel.study import Study

Say = Callable[[str, str], None]
NOTHING_KEPT = Witnesses()


@dataclass
class Verdict:
    """What was checked, and the first artifact that failed.

    checks: (property, what was seen), in the order in which they were made.
    """

    folder: Path
    checks: list[tuple[str, str]] = field(default_factory=list)
    failure: ArtifactError | None = None
    evaluator: Json = None
    manifest_sha256: str = ""
    head_sha256: str = ""
    signed_by: SignedBy | None = None

    @property
    def verified(self) -> bool:
        """Whether the folder is whole and says what happened."""
        return self.failure is None


def verify_folder(
    rig: Rig,
    folder: Path,
    *,
    expect_head: str | None = None,
    public_key: bytes | None = None,
    transcript: Sequence[str] | None = None,
    refit: bool = False,
    say: Say | None = None,
) -> Verdict:
    """Check a session folder; nothing is written.

    expect_head, public_key, transcript: see ``Witnesses``.
    refit: run every computation again and compare.
    say: told of each property as soon as it holds.
    Raises OperatorError where there is no folder, FolderLockedError where a
    driver is at work in it.
    """
    if not is_folder(folder):
        raise OperatorError(
            f"there is no session folder {str(folder)!r} to verify; give the folder of a session"
        )
    kept = Witnesses(expect_head, public_key, transcript)
    with Store.open_readonly(folder) as store:
        return verify_store(rig, store, folder, witnesses=kept, refit=refit, say=say)


def verify_store(
    rig: Rig,
    store: Store,
    folder: Path,
    *,
    witnesses: Witnesses = NOTHING_KEPT,
    refit: bool = False,
    say: Say | None = None,
    inner: bool = False,
) -> Verdict:
    """Check the session in an open, locked folder, as ``verify_folder`` does.

    inner: it is a session within another one, which has no signature of its own.
    """
    verdict = Verdict(folder)
    try:
        _Verification(rig, store, verdict, say, witnesses, refit=refit, inner=inner).run()
    except ArtifactError as error:
        verdict.failure = error
    return verdict


class _Verification:
    """One pass: every file is read once, its bytes both hashed and parsed."""

    def __init__(
        self,
        rig: Rig,
        store: Store,
        verdict: Verdict,
        say: Say | None,
        witnesses: Witnesses,
        *,
        refit: bool,
        inner: bool,
    ) -> None:
        self._rig = rig
        self._store = store
        self._verdict = verdict
        self._say = say
        self._witnesses = witnesses
        self._refit = refit
        self._beside = set() if inner else {SIGNATURE}  # what the manifest does not list
        self._manifest: dict[str, Json] | None = None
        self._present: set[str] = set()
        self._entries: dict[str, Json] = {}

    def run(self) -> None:
        """Check everything; raises ArtifactError at the first failure."""
        self._members()
        self._signature()
        study, study_bytes = self._study()
        environment = self._environment(study)
        driven, journal = self._replay(study, study_bytes, environment)
        self._evaluation(study, environment, driven, journal.head)
        self._seal(study, driven, journal)
        self._head(journal.head, self._witnesses.head)
        self._transcript()

    # -- files -----------------------------------------------------------

    def _members(self) -> None:
        if not (self._store.exists(records.STUDY) or self._store.exists(records.MANIFEST)):
            raise UnfinishedError(records.STUDY, "this file is missing; no session was begun here")
        names = self._store.names()
        self._present = set(names)
        if records.MANIFEST not in self._present:
            return
        data = self._store.read(records.MANIFEST)
        manifest = seal.read_manifest(seal.decoded(records.MANIFEST, data))
        present = {*members.own_names(names, manifest["sessions"])} - self._beside
        members.require_members(present, {records.MANIFEST, *manifest["files"]})
        self._manifest, self._manifest_bytes = manifest, data
        self._verdict.manifest_sha256 = sha256_hex(data)
        self._passed("membership", f"{len(present)} files, exactly those of the manifest")

    def _signature(self) -> None:
        expected = self._witnesses.public_key
        if self._manifest is None:
            return
        if SIGNATURE not in self._present:
            if expected is not None:
                raise ArtifactError(SIGNATURE, "this file is missing; the session is not signed")
            return
        data = self._store.read(SIGNATURE)
        signed_by = require_signature(data, self._manifest_bytes, expected)
        self._verdict.signed_by = signed_by
        self._passed("signature", str(signed_by))

    def _read(self, name: str) -> bytes | None:
        """Read one file and compare it with the manifest's entry."""
        if name not in self._present:
            return None
        data = self._store.read(name)
        entry = self._entries[name] = seal.file_entry(data)
        if self._manifest is not None and self._manifest["files"].get(name) != entry:
            raise ArtifactError(name, "its bytes are not those that the manifest lists")
        return data

    def _need(self, name: str) -> bytes:
        data = self._read(name)
        if data is None:
            raise UnfinishedError(name, "this file is missing; the session is unfinished")
        return data

    def _passed(self, name: str, seen: str) -> None:
        self._verdict.checks.append((name, seen))
        if self._say is not None:
            self._say(name, seen)

    # -- the study -------------------------------------------------------

    def _study(self) -> tuple[Study, bytes]:
        data = self._need(records.STUDY)
        study = freeze.read_study(data)
        if self._manifest is None:
            members.require_unfinished(self._present, study.source)
            self._passed("names", f"{len(self._present)} files, all of an unfinished session")
        for path, expected in study.source.items():
            name = freeze.SOURCE + path
            if sha256_hex(self._need(name)) != expected:
                raise ArtifactError(name, "its bytes are not those that study.json lists")
        changed = snapshot.differences(study.source, snapshot.hashes(self._rig.snapshot()))
        note = (
            "the installed source is the same"
            if not changed
            else f"the installed source differs: {_some(changed)}"
        )
        self._passed("study", f"{len(study.source)} source files match their hashes; {note}")
        return study, data

    def _environment(self, study: Study) -> Environment:
        try:
            return entry_of(self._rig.registry, study.config).environment
        except ConfigError as error:
            raise ArtifactError(records.STUDY, str(error)) from None

    # -- the journal -----------------------------------------------------

    def _replay(
        self, study: Study, study_bytes: bytes, environment: Environment
    ) -> tuple[Driven, Journal]:
        nonce, display = session_terms(self._need(records.SESSION))
        current = freeze.current_runtime(self._rig, environment)
        changed = [
            *runtime.differences(dict(study.runtime), current),
            *runtime.differences(display, self._rig.display_runtime()),
        ]
        self._agree = environment.agree if changed else None
        root = records.chain_root(nonce, study_bytes)
        check = value_check(environment)
        journal = Journal(ReadOnlyRecords(self._read), root, self._agree, check)
        episode = environment.open(study, nonce)
        opening = records.session_document(
            nonce, display, episode.opening_charge, episode.pending(), root
        )
        journal.settle(records.SESSION, opening, None)
        values = SavedValues(environment, self._inner, self.same, refit=self._refit)
        self._sent = Sent(journal.message, values)
        try:
            driven = drive(episode, End(), journal, self._rig.clock, self._sent)
        except UnfinishedError:
            self._passed(
                "so far", f"{len(journal.names)} linked records replay; {values.summary()}"
            )
            raise
        note = (
            "under the frozen runtime"
            if not changed
            else f"under another runtime: {_some(changed)}"
        )
        self._passed("chain", f"{len(journal.names)} records, each linked to the one before it")
        self._passed(
            "replay", f"{driven.turns} turns give the saved observations and responses, {note}"
        )
        self._passed("values", values.summary())
        return driven, journal

    def _inner(self, task: Task, value: Json) -> None:
        """Verify a session within this one against its saved value."""
        folder = records.task_folder(task.key)
        path = self._store.subfolder(folder)
        with Store.open_readonly(path) as store:
            verdict = verify_store(self._rig, store, path, refit=self._refit, inner=True)
        if verdict.failure is not None:
            raise ArtifactError(f"{folder}/{verdict.failure.artifact}", str(verdict.failure))
        if value != hosted.value_of(verdict.manifest_sha256, verdict.evaluator):
            raise ArtifactError(
                f"{folder}/{records.MANIFEST}", "it is not the one that the journal saved"
            )
        self._passed("inner session", f"{folder} verified")

    def same(self, part: Part, saved: Json, recomputed: Json) -> bool:
        """Equality; under another runtime, within the stated tolerance."""
        if encode(saved) == encode(recomputed):
            return True
        return self._agree is not None and self._agree(part, saved, recomputed)

    # -- the end ---------------------------------------------------------

    def _evaluation(
        self, study: Study, environment: Environment, driven: Driven, head: str
    ) -> None:
        saved = seal.decoded(records.EVALUATOR, self._need(records.EVALUATOR))
        evaluation = environment.evaluate(study, driven.final)
        document = seal.evaluator_document(driven, environment.budget(study), evaluation, head)
        fields = [name for name in document if name != "evaluation"]
        if not isinstance(saved, dict) or saved.keys() != document.keys():
            raise ArtifactError(
                records.EVALUATOR, f"the fields are not exactly {', '.join(sorted(document))}"
            )
        for name in fields:
            if encode(saved[name]) != encode(document[name]):
                raise ArtifactError(records.EVALUATOR, f"{name} is not what the journal comes to")
        if not self.same(Part.EVALUATION, saved["evaluation"], evaluation):
            raise ArtifactError(
                records.EVALUATOR, "the evaluation recomputed from the retained actions differs"
            )
        self._verdict.evaluator = saved
        self._passed("evaluator", "recomputed from the retained actions and the hidden state")

    def _seal(self, study: Study, driven: Driven, journal: Journal) -> None:
        if self._manifest is None:
            raise UnfinishedError(
                records.MANIFEST, "this file is missing; the session is unfinished"
            )
        members.require_members(
            self._manifest["files"], members.expected_names(study, journal.names)
        )
        document = seal.manifest_document(driven, journal.head, self._entries)
        if document != self._manifest:
            raise ArtifactError(records.MANIFEST, "it is not the manifest of this session")
        self._passed(
            "manifest", f"{len(self._entries)} hashes, sizes and the outcome are those of the files"
        )

    def _head(self, head: str, expected: str | None) -> None:
        self._verdict.head_sha256 = head
        if expected is None:
            return
        if expected.lower() != head:
            raise ArtifactError(
                records.MANIFEST, f"the head is {head}, not the expected {expected}"
            )
        self._passed("head", "the expected one")

    def _transcript(self) -> None:
        if self._witnesses.transcript is not None:
            self._passed("transcript", self._sent.compare(self._witnesses.transcript))


def _some(changes: list[str], most: int = 3) -> str:
    more = f" and {len(changes) - most} more" if len(changes) > most else ""
    return ", ".join(changes[:most]) + more
