"""The study: what is frozen before anything is acquired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from probebench.kernel.canonical import Json

STUDY_FORMAT = "probebench.study/2"


@dataclass(frozen=True)
class Study:
    """Configuration, runtime, source and sandbox of a session, and nothing else.

    config: the checked configuration; its ``environment`` names the entry of
        the registry.
    runtime: versions, BLAS, threads and processor features.
    source: SHA-256 of every source file, by path inside the package.
    sandbox: what its clients run in, or None; no figure depends on it.
    """

    config: Json
    runtime: Mapping[str, Json]
    source: Mapping[str, str]
    sandbox: Json = None

    @property
    def environment(self) -> str:
        """The registry's name of the environment."""
        return str(self.config["environment"])

    def document(self) -> dict[str, Json]:
        """The content of study.json."""
        return {
            "format": STUDY_FORMAT,
            "config": self.config,
            "runtime": dict(self.runtime),
            "source": dict(self.source),
            "sandbox": self.sandbox,
        }

    @classmethod
    def from_document(cls, document: Json) -> Study:
        """Read study.json.  Raises ValueError with a sentence."""
        expected = {"format", "config", "runtime", "source", "sandbox"}
        found = document.get("format") if isinstance(document, dict) else None
        if found != STUDY_FORMAT:
            raise ValueError(f"the format is {found!r:.80}; expected {STUDY_FORMAT!r}")
        if set(document) != expected:
            raise ValueError(f"a study has exactly the fields {', '.join(sorted(expected))}")
        for name in ("config", "runtime", "source"):
            if not isinstance(document[name], dict):
                raise ValueError(f"{name} is not an object")
        if not isinstance(document["sandbox"], dict | None):
            raise ValueError("sandbox is neither an object nor null")
        if not isinstance(document["config"].get("environment"), str):
            raise ValueError("config.environment is not a string")
        return cls(document["config"], document["runtime"], document["source"], document["sandbox"])
