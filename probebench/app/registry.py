"""Which environments there are."""

from __future__ import annotations

from collections.abc import Mapping

from probebench.app.entry import Entry
from probebench.kernel.canonical import Json
from probebench.kernel.errors import ConfigError

Registry = Mapping[str, Entry]


def entry_of(registry: Registry, config: Json) -> Entry:
    """The entry that a configuration names, its fields checked.

    Raises ConfigError.
    """
    if not isinstance(config, dict):
        raise ConfigError("the configuration must be a JSON object; correct the file")
    name = config.get("environment")
    if not isinstance(name, str) or name not in registry:
        known = ", ".join(sorted(registry))
        problem = (
            "is missing" if "environment" not in config else f"is {name!r:.60}, which is unknown"
        )
        raise ConfigError(
            f"the configuration is not valid: environment {problem}; use one of {known}"
        )
    entry = registry[name]
    entry.environment.configure(config)
    return entry


def default_registry() -> Registry:
    """The environments of this suite."""
    # Imported here so that `--help` and the toys do not pay for NumPy.
    from probebench.app.optical import optical_entry

    return {"optical": optical_entry()}
