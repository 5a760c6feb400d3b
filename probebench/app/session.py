"""Run or resume a session: freeze, drive, say farewell, judge, seal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from probebench.app import freeze, hosted, members, seal
from probebench.app.drive import Driven, drive
from probebench.app.entry import Entry
from probebench.app.journal import Journal
from probebench.app.live import Live
from probebench.app.registry import entry_of
from probebench.app.rig import Clients, Rig
from probebench.app.saved_values import value_check
from probebench.host.folder import is_folder
from probebench.host.store import Store
from probebench.kernel.canonical import Json, encode, sha256_hex
from probebench.kernel.episode import Task
from probebench.kernel.errors import ArtifactError, OperatorError
from probebench.kernel.study import Study
from probebench.kernel.turn import (
    EVALUATOR,
    MANIFEST,
    SESSION,
    STUDY,
    chain_root,
    record_from,
    session_document,
)

NONCE_BYTES = 32


@dataclass(frozen=True)
class Outcome:
    """What a finished folder holds, for whoever ran it.

    head_sha256: digest of the last turn record, to be kept elsewhere.
    already_complete: nothing was run or written.
    """

    folder: Path
    study: Study
    submitted: bool
    cause: str
    head_sha256: str
    manifest_sha256: str
    evaluator: Json
    already_complete: bool = False

    @property
    def status(self) -> str:
        """``submitted``, ``failed`` or ``not-run``."""
        return str(self.evaluator["outcome"]["status"])


def run_session(
    rig: Rig, folder: Path, config: Json, clients: Clients, *, resume: bool = False
) -> Outcome:
    """Run the session that ``config`` describes in ``folder``.

    With ``resume``, go on where an earlier driver stopped, from wherever it
    stopped.  Raises OperatorError, ResumeMismatchError, FolderLockedError,
    HostError, InterruptedBySignalError.
    """
    entry = entry_of(rig.registry, config)
    with _opened(rig, folder, resume=resume) as store:
        if store.exists(STUDY):
            freeze.require_same_config(freeze.read_study(store.read(STUDY)), config)
        if store.exists(MANIFEST):
            return _completed(store, folder)
        return _Session(rig, entry, store, folder, clients).run(config)


def frozen_config(rig: Rig, folder: Path) -> Json:
    """The configuration that a session folder was started with."""
    if not is_folder(folder):
        raise OperatorError(
            f"there is no session folder {str(folder)!r}; start one with `probebench session`"
        )
    with Store.open(folder, rig.filesystem) as store:
        if not store.exists(STUDY):
            raise OperatorError(
                f"the folder {str(folder)!r} has no study.json: it holds no session, or one that was interrupted "
                "before it was frozen; give its configuration with `probebench session --config ... --resume`"
            )
        return freeze.read_study(store.read(STUDY)).config


def _opened(rig: Rig, folder: Path, *, resume: bool) -> Store:
    if resume and is_folder(folder):
        return Store.open(folder, rig.filesystem)
    return Store.create(folder, rig.filesystem)


def _completed(store: Store, folder: Path) -> Outcome:
    store.finish(MANIFEST)
    manifest_bytes = store.read(MANIFEST)
    manifest = seal.read_manifest(seal.decoded(MANIFEST, manifest_bytes))
    evaluator = seal.read_evaluator(seal.decoded(EVALUATOR, store.read(EVALUATOR)), manifest)
    return Outcome(
        folder=folder,
        study=freeze.read_study(store.read(STUDY)),
        submitted=manifest["outcome"]["status"] == "submitted",
        cause=manifest["outcome"]["cause"],
        head_sha256=manifest["head_sha256"],
        manifest_sha256=sha256_hex(manifest_bytes),
        evaluator=evaluator,
        already_complete=True,
    )


class _StoreRecords:
    """A store as the journal sees it: what is not there reads as None."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.publish = store.publish

    def read(self, name: str) -> bytes | None:
        return self._store.read(name) if self._store.exists(name) else None


class _Session:
    """One run in one locked, unfinished folder."""

    def __init__(
        self, rig: Rig, entry: Entry, store: Store, folder: Path, clients: Clients
    ) -> None:
        self._rig = rig
        self._environment = entry.environment
        self._store = store
        self._folder = folder
        self._clients = clients

    def run(self, config: Json) -> Outcome:
        """Freeze or check, drive, judge, seal."""
        study, study_bytes = self._frozen(config)
        nonce, display = self._session_terms()
        root = chain_root(nonce, study_bytes)
        check = value_check(self._environment)
        journal = Journal(_StoreRecords(self._store), root, check=check)
        episode = self._environment.open(study, nonce)
        document = session_document(nonce, display, episode.opening_charge, episode.pending(), root)
        journal.settle(SESSION, document, None)
        source = Live(self._environment, self._clients, self._run_hosted, self._rig.stop)
        driven = drive(episode, source, journal, self._rig.clock, self._rig.observer)
        self._clients.farewell(driven.final, journal.message)
        return self._conclude(study, driven, journal)

    def _frozen(self, config: Json) -> tuple[Study, bytes]:
        study, files = freeze.current_study(self._rig, config)
        names = self._store.names()
        if self._store.exists(STUDY):
            frozen = freeze.read_study(self._store.read(STUDY))
            freeze.require_same_machine(frozen, study)
            freeze.require_same_sandbox(frozen, study)
            members.require_unfinished(names, frozen.source)
            self._recover()
            return frozen, self._store.read(STUDY)
        members.require_nothing_foreign(names, files)
        self._recover()
        freeze.freeze(self._store, study, files)
        return study, self._store.read(STUDY)

    def _recover(self) -> None:
        """Tidy up after a killed driver, once all that is here is known for its own."""
        self._store.discard_temporaries()
        # What it published may be in the page cache alone.
        self._store.sync()

    def _session_terms(self) -> tuple[bytes, Json]:
        display = self._rig.display_runtime()
        if not self._store.exists(SESSION):
            return self._rig.entropy(NONCE_BYTES), display
        nonce, frozen_display = session_terms(self._store.read(SESSION))
        freeze.require_same_display(frozen_display, display)
        return nonce, frozen_display

    def _run_hosted(self, task: Task) -> Json:
        return hosted.run(self._folder, task, self._clients, self._run_inner)

    def _run_inner(self, folder: Path, config: Json, clients: Clients) -> Outcome:
        return run_session(self._rig, folder, config, clients, resume=True)

    def _conclude(self, study: Study, driven: Driven, journal: Journal) -> Outcome:
        budget = self._environment.budget(study)
        evaluation = self._environment.evaluate(study, driven.final)
        evaluator = seal.evaluator_document(driven, budget, evaluation, journal.head)
        self._publish_or_compare(EVALUATOR, encode(evaluator))
        manifest = encode(self._manifest(study, driven, journal))
        self._store.publish(MANIFEST, manifest)
        return Outcome(
            folder=self._folder,
            study=study,
            submitted=driven.final.submitted,
            cause=driven.final.cause,
            head_sha256=journal.head,
            manifest_sha256=sha256_hex(manifest),
            evaluator=evaluator,
        )

    def _publish_or_compare(self, name: str, data: bytes) -> None:
        if not self._store.exists(name):
            self._store.publish(name, data)
        elif self._store.read(name) != data:
            raise ArtifactError(name, "the saved evaluation differs from the recomputed one")

    def _manifest(self, study: Study, driven: Driven, journal: Journal) -> dict[str, Json]:
        expected = members.expected_names(study, journal.names)
        present = members.own_names(self._store.names(), driven.sessions)
        members.require_members(present, expected)
        files = seal.describe_files(expected, self._store.read)
        return seal.manifest_document(driven, journal.head, files)


def session_terms(data: bytes) -> tuple[bytes, Json]:
    """The nonce and the display runtime of session.json.  Raises ArtifactError."""
    try:
        document = record_from(data)
        nonce, display = bytes.fromhex(document["nonce"]), document["display_runtime"]
    except (ValueError, KeyError, TypeError) as error:
        raise ArtifactError(SESSION, f"the record cannot be read ({error})") from None
    if len(nonce) != NONCE_BYTES:
        raise ArtifactError(SESSION, f"the nonce has {len(nonce)} bytes, not {NONCE_BYTES}")
    return nonce, display
