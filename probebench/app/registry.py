"""Which environments there are, and how each is put together.

This is the only module that sees the public and the hidden side of an
environment at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from probebench.kernel.canonical import Json
from probebench.kernel.environment import Environment
from probebench.kernel.errors import ConfigError
from probebench.kernel.report import Reporter


@dataclass(frozen=True)
class Entry:
    """One environment, with what the commands need besides.

    control: the arguments after the interpreter that start the scripted
        transport control, or None where the environment has none.
    fresh_config: (entropy, options) to a development configuration with
        fresh seeds, or None.
    reporter: how a finished session reads to a person, or None.
    schemas: JSON Schemas of the messages by name.
    """

    environment: Environment
    control: tuple[str, ...] | None = None
    fresh_config: Callable[[Callable[[int], bytes], Mapping[str, str]], Json] | None = None
    reporter: Reporter | None = None
    schemas: Callable[[], dict[str, Json]] | None = None


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
        problem = "is missing" if "environment" not in config else f"is {name!r:.60}, which is unknown"
        raise ConfigError(f"the configuration is not valid: environment {problem}; use one of {known}")
    entry = registry[name]
    entry.environment.configure(config)
    return entry


def default_registry() -> Registry:
    """The environments of this suite."""
    # Imported here so that `--help` and the toys do not pay for NumPy.
    from probebench.app.optical import optical_entry

    return {"optical": optical_entry()}
