"""Verify a folder from its bytes: membership, hashes, chain, replay, evaluator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from probebench.app import freeze, hosted, members, seal
from probebench.app.drive import Driven, End, TurnSeen, drive
from probebench.app.journal import Journal, ReadOnlyRecords
from probebench.app.registry import entry_of
from probebench.app.rig import Rig
from probebench.app.session import session_terms
from probebench.host import runtime, snapshot
from probebench.host.folder import is_folder
from probebench.host.store import Store
from probebench.kernel import turn as records
from probebench.kernel.budget import Charge
from probebench.kernel.canonical import Json, decode, encode, sha256_hex
from probebench.kernel.environment import Environment, Part
from probebench.kernel.episode import Task
from probebench.kernel.errors import ArtifactError, ConfigError, OperatorError, UnfinishedError
from probebench.kernel.study import Study

Say = Callable[[str, str], None]


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

    @property
    def verified(self) -> bool:
        """Whether the folder is whole and says what happened."""
        return self.failure is None


def verify_folder(
    rig: Rig,
    folder: Path,
    *,
    expect_head: str | None = None,
    refit: bool = False,
    say: Say | None = None,
) -> Verdict:
    """Check a session folder; nothing is written.

    expect_head: the head digest that was noted when the session ended.
    refit: run every computation again and compare.
    say: told of each property as soon as it holds.
    Raises OperatorError where there is no folder, FolderLockedError where a
    driver is at work in it.
    """
    if not is_folder(folder):
        raise OperatorError(
            f"there is no session folder {str(folder)!r} to verify; give the folder of a session"
        )
    verdict = Verdict(folder)
    with Store.open_readonly(folder) as store:
        try:
            _Verification(rig, store, verdict, say, refit=refit).run(expect_head)
        except ArtifactError as error:
            verdict.failure = error
    return verdict


class _Verification:
    """One pass: every file is read once, its bytes both hashed and parsed."""

    def __init__(
        self, rig: Rig, store: Store, verdict: Verdict, say: Say | None, *, refit: bool
    ) -> None:
        self._rig = rig
        self._store = store
        self._verdict = verdict
        self._say = say
        self._refit = refit
        self._manifest: dict[str, Json] | None = None
        self._present: set[str] = set()
        self._entries: dict[str, Json] = {}

    def run(self, expect_head: str | None) -> None:
        """Check everything; raises ArtifactError at the first failure."""
        self._members()
        study, study_bytes = self._study()
        environment = self._environment(study)
        driven, journal = self._replay(study, study_bytes, environment)
        self._evaluation(study, environment, driven, journal.head)
        self._seal(study, driven, journal)
        self._head(journal.head, expect_head)

    # -- files -----------------------------------------------------------

    def _members(self) -> None:
        if not (self._store.exists(records.STUDY) or self._store.exists(records.MANIFEST)):
            raise UnfinishedError(records.STUDY, "this file is missing; no session was begun here")
        names = self._store.names()
        self._present = set(names)
        if records.MANIFEST not in self._present:
            return
        data = self._store.read(records.MANIFEST)
        manifest = seal.read_manifest(self._decoded(records.MANIFEST, data))
        present = members.own_names(names, manifest["sessions"])
        members.require_members(present, {records.MANIFEST, *manifest["files"]})
        self._manifest = manifest
        self._verdict.manifest_sha256 = sha256_hex(data)
        self._passed("membership", f"{len(present)} files, exactly those of the manifest")

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

    @staticmethod
    def _decoded(name: str, data: bytes) -> Json:
        try:
            return decode(data)
        except ValueError as error:
            raise ArtifactError(name, str(error)) from None

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
        self._source_changed = bool(changed)
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
        changed = [
            *runtime.differences(dict(study.runtime), self._rig.runtime()),
            *runtime.differences(display, self._rig.display_runtime()),
        ]
        self._agree = environment.agree if changed else None
        root = records.chain_root(nonce, study_bytes)
        journal = Journal(ReadOnlyRecords(self._read), root, self._agree)
        episode = environment.open(study, nonce)
        opening = records.session_document(
            nonce, display, episode.opening_charge, episode.pending(), root
        )
        journal.settle(records.SESSION, opening, None)
        values = _Values(self, environment)
        try:
            driven = drive(episode, End(), journal, self._rig.clock, values)
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

    def _explained(self, error: ArtifactError) -> ArtifactError:
        """Add what an honest folder may fail for."""
        if not self._source_changed:
            return error
        hint = "the installed source is not the frozen one, which may be why"
        return ArtifactError(error.artifact, f"{error.sentence}; {hint}")

    def inner(self, task: Task, value: Json) -> None:
        """Verify a session within this one against its saved value."""
        folder = records.task_folder(task.key)
        verdict = verify_folder(self._rig, self._store.subfolder(folder), refit=self._refit)
        if verdict.failure is not None:
            raise ArtifactError(f"{folder}/{verdict.failure.artifact}", str(verdict.failure))
        if value != hosted.value_of(verdict.manifest_sha256, verdict.evaluator):
            raise ArtifactError(
                f"{folder}/{records.MANIFEST}", "it is not the one that the journal saved"
            )
        self._passed("inner session", f"{folder} verified")

    def refits(self) -> bool:
        """Whether every computation is to be run again."""
        return self._refit

    def same(self, part: Part, saved: Json, recomputed: Json) -> bool:
        """Equality; under another runtime, within the stated tolerance."""
        if encode(saved) == encode(recomputed):
            return True
        return self._agree is not None and self._agree(part, saved, recomputed)

    # -- the end ---------------------------------------------------------

    def _evaluation(
        self, study: Study, environment: Environment, driven: Driven, head: str
    ) -> None:
        saved = self._decoded(records.EVALUATOR, self._need(records.EVALUATOR))
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


class _Values:
    """Checks each saved value as its turn is replayed."""

    def __init__(self, verification: _Verification, environment: Environment) -> None:
        self._verification = verification
        self._environment = environment
        self._checked = 0
        self._rerun = 0

    def opened(self, charge: Charge) -> None:
        """Nothing is computed yet."""

    def turn(self, seen: TurnSeen) -> None:
        """Check the value of one turn, if it has one."""
        if seen.task is None:
            return
        self._checked += 1
        if seen.task.hosted:
            self._verification.inner(seen.task, seen.value)
            return
        name = records.response_name(seen.turn)
        try:
            self._environment.check(seen.task, seen.value)
        except ValueError as error:
            raise ArtifactError(
                name, f"the saved value does not fit its computation: {error}"
            ) from None
        if self._verification.refits():
            self._run_again(name, seen.task, seen.value)

    def _run_again(self, name: str, task: Task, value: Json) -> None:
        self._rerun += 1
        if not self._verification.same(Part.VALUE, value, self._environment.run(task)):
            raise ArtifactError(name, f"the computation {task.key!r} run again gives another value")

    def summary(self) -> str:
        """What was checked, in words."""
        if not self._checked:
            return "no computed values"
        rerun = (
            f"; {self._rerun} run again, all the same"
            if self._rerun
            else "; none run again (--refit does)"
        )
        return f"{self._checked} computed values are bound to their observations{rerun}"


def _some(changes: list[str], most: int = 3) -> str:
    more = f" and {len(changes) - most} more" if len(changes) > most else ""
    return ", ".join(changes[:most]) + more
