"""The optical environment put together: its public and its hidden side meet here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from probebench.app.entry import Entry
from probebench.environments.optical import config as configuration
from probebench.environments.optical import evaluator, fixture
from probebench.environments.optical.config import OpticalConfig
from probebench.environments.optical.environment import OpticalEnvironment
from probebench.environments.optical.episode import Expose
from probebench.environments.optical.report import REPORTER
from probebench.kernel.canonical import Json
from probebench.kernel.errors import OperatorError
from probebench.kernel.schema import ClosedModel
from probebench.wire import optical as wire

SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
OPTIONS = {"track": "tool_assisted", "name": "development", "preset": "default"}


class Hidden:
    """The wavefront and its judge, as the public side is handed them."""

    def instrument(self, config: OpticalConfig) -> Expose:
        """The camera with its wavefront inside."""
        return fixture.Instrument(config).expose

    def evaluate(
        self,
        config: OpticalConfig,
        exposed_commands_opd_nm: list[list[float]],
        final_command_opd_nm: list[float],
    ) -> Json:
        """The evaluation of a finished episode."""
        return evaluator.evaluate(config, exposed_commands_opd_nm, final_command_opd_nm)

    def secrets(self, config: OpticalConfig, evaluation: Json) -> Sequence[Json]:
        """Every hidden value."""
        return fixture.secrets(config, evaluation)


def optical_entry() -> Entry:
    """The registry's entry of the static six-mode camera."""
    return Entry(
        environment=OpticalEnvironment(Hidden()),
        control=("-m", "probebench.clients.scripted"),
        fresh_config=_fresh_config,
        reporter=REPORTER,
        schemas=_schemas,
    )


def _fresh_config(entropy: Callable[[int], bytes], options: Mapping[str, str]) -> Json:
    if unknown := sorted(set(options) - set(OPTIONS)):
        raise OperatorError(
            f"an optical configuration has no option {', '.join(unknown)}; use {', '.join(OPTIONS)}"
        )
    return configuration.fresh_config(entropy, **(OPTIONS | dict(options)))


def _schemas() -> dict[str, Json]:
    """JSON Schemas of every message, and of the configuration, each named with its version."""
    messages: dict[str, type[ClosedModel]] = {
        **wire.CLIENT_MESSAGES,
        **wire.DRIVER_MESSAGES,
        "config": OpticalConfig,
    }
    return {
        name: {
            "$schema": SCHEMA_DIALECT,
            "$id": f"urn:probebench:{wire.PROTOCOL}:{name}",
            **model.model_json_schema(),
        }
        for name, model in messages.items()
    }
