"""Freeze configuration, source and runtime; refuse to resume under others."""

from __future__ import annotations

from probebench.app.registry import entry_of
from probebench.app.rig import Rig
from probebench.host import runtime, snapshot
from probebench.host.store import Store
from probebench.kernel.canonical import Json, decode, encode
from probebench.kernel.environment import Environment
from probebench.kernel.errors import ArtifactError, ResumeMismatchError
from probebench.kernel.study import Study
from probebench.kernel.turn import STUDY

SOURCE = "source/"


def current_study(rig: Rig, config: Json) -> tuple[Study, dict[str, bytes]]:
    """The study of this configuration here and now, and the source files."""
    files = rig.snapshot()
    captured = current_runtime(rig, entry_of(rig.registry, config).environment)
    return Study(config, captured, snapshot.hashes(files), rig.sandbox), files


def current_runtime(rig: Rig, environment: Environment) -> dict[str, Json]:
    """What figures of this environment depend on here and now."""
    captured = rig.runtime()
    own = {**runtime.versions(environment.packages), **environment.policies}
    if not own:
        return captured
    return {**captured, runtime.VERSIONS: {**captured.get(runtime.VERSIONS, {}), **own}}


def freeze(store: Store, study: Study, files: dict[str, bytes]) -> None:
    """Publish the source files and, last, study.json.

    Files that an interrupted start left are kept if they are the same.
    Raises ResumeMismatchError naming one that is not.
    """
    missing: dict[str, bytes] = {}
    for path, data in files.items():
        name = SOURCE + path
        if not store.exists(name):
            missing[name] = data
        elif store.read(name) != data:
            raise ResumeMismatchError(
                f"source file {path} has changed since the session was started; {ADVICE}"
            )
    store.publish_all(missing)
    store.publish(STUDY, encode(study.document()))


def read_study(data: bytes) -> Study:
    """Read study.json.  Raises ArtifactError."""
    try:
        return Study.from_document(decode(data))
    except ValueError as error:
        raise ArtifactError(STUDY, str(error)) from None


def require_same_config(frozen: Study, config: Json) -> None:
    """Raise ResumeMismatchError naming every field that differs."""
    changed = paths_that_differ(frozen.config, config)
    if changed:
        raise ResumeMismatchError(
            f"the configuration has changed in {', '.join(changed)}; {ADVICE}"
        )


def require_same_machine(frozen: Study, current: Study) -> None:
    """Raise ResumeMismatchError naming every source file and version that differs."""
    changed = [
        *snapshot.differences(frozen.source, current.source),
        *runtime.differences(dict(frozen.runtime), dict(current.runtime)),
    ]
    if changed:
        raise ResumeMismatchError(f"source or runtime has changed: {'; '.join(changed)}; {ADVICE}")


def require_same_sandbox(frozen: Study, current: Study) -> None:
    """Raise ResumeMismatchError unless clients run as those before them did.

    Otherwise a record would say of all turns what is true of some.
    """
    if frozen.sandbox == current.sandbox:
        return
    if frozen.sandbox is None or current.sandbox is None:
        was, now = ("without", "with") if frozen.sandbox is None else ("with", "without")
        raise ResumeMismatchError(
            f"the session was started {was} --sandbox and cannot go on {now} it; give the option "
            "as at the start, or start a new session in another folder"
        )
    changed = "; ".join(runtime.differences(frozen.sandbox, current.sandbox))
    raise ResumeMismatchError(f"the sandbox has changed: {changed}; {ADVICE}")


def require_same_display(frozen: Json, current: Json) -> None:
    """Raise ResumeMismatchError naming what differs in the PNG renderer."""
    if changed := runtime.differences(frozen, current):
        raise ResumeMismatchError(
            f"the display runtime has changed: {'; '.join(changed)}; {ADVICE}"
        )


ADVICE = "restore what was frozen, or start a new session in another folder"


def paths_that_differ(frozen: Json, current: Json, prefix: str = "") -> list[str]:
    """Dotted paths of the fields in which two JSON values differ.

    Paths alone: the values of a configuration are hidden from the client,
    which may read what the driver prints.
    """
    if not (isinstance(frozen, dict) and isinstance(current, dict)):
        same = encode(frozen) == encode(current)
        return [] if same else [prefix or "(whole document)"]
    changed: list[str] = []
    for key in sorted(frozen.keys() | current.keys()):
        path = f"{prefix}.{key}" if prefix else key
        if key in frozen and key in current:
            changed += paths_that_differ(frozen[key], current[key], path)
        else:
            changed.append(path)
    return changed
