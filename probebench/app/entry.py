"""One entry of the registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from probebench.kernel.canonical import Json
from probebench.kernel.environment import Environment
from probebench.kernel.report import Reporter

FreshConfig = Callable[[Callable[[int], bytes], Mapping[str, str]], Json]


@dataclass(frozen=True)
class Entry:
    """One environment, with what the commands need besides.

    control: the arguments after the interpreter that start the scripted
        transport control, or None where the environment has none.
    fresh_config: (entropy, options) to a development configuration with
        fresh seeds, or None.
    reporter: how a session reads to a person, or None.
    schemas: JSON Schemas of the messages by name, or None.
    streams: whether a client may be at the driver's own streams; one that is
        started for each request is not.
    """

    environment: Environment
    control: tuple[str, ...] | None = None
    fresh_config: FreshConfig | None = None
    reporter: Reporter | None = None
    schemas: Callable[[], dict[str, Json]] | None = None
    streams: bool = True
