"""Each rule catches a tree that breaks it, in every way an import can be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import rules
from tests.architecture.imports import read_tree
from tests.architecture.table import Component, HiddenSide, LocalImport, Table

TABLE = Table(
    components=(
        Component(
            "probebench.app", ("probebench.worlds", "probebench.host", "probebench.kernel"), ""
        ),
        Component("probebench.worlds", ("probebench.kernel",), "", split=True),
        Component("probebench.host", ("probebench.kernel",), ""),
        Component("probebench.kernel", (), "", pure=True),
    ),
    pure_modules=frozenset({"json", "typing"}),
    forbidden_calls=frozenset({"open"}),
    hidden=(HiddenSide("probebench.worlds.sea", ("truth",), "probebench.app.wiring"),),
    local_imports=(LocalImport("probebench.app", "scipy.optimize", "slow to import"),),
)

# Obeys every rule; each test breaks it in one place.
OBEDIENT = {
    "__init__": "",
    "app/__init__": "",
    "app/wiring": "from probebench.worlds.sea import truth, shore\n",
    "app/fit": "def fit():\n    import scipy.optimize\n",
    "worlds/__init__": "",
    "worlds/sea/__init__": "",
    "worlds/sea/shore": "from probebench.kernel import turn\n",
    "worlds/sea/truth": "from . import shore\n",
    "worlds/land": "import probebench.kernel.turn\n",
    "host/__init__": "",
    "host/store": "import os\nfrom ..kernel.turn import TURN\n",
    "kernel/__init__": "",
    "kernel/turn": "import json\nTURN = 1\n_HIDDEN = 2\n",
}

BREAKS = [
    (rules.every_module_belongs_to_a_component, "stray", ""),
    (rules.components_import_only_what_is_below_them, "host/store", "import probebench.app.fit"),
    (rules.components_import_only_what_is_below_them, "host/store", "import probebench.worlds"),
    (
        rules.components_import_only_what_is_below_them,
        "host/store",
        "from probebench import worlds",
    ),
    (rules.components_import_only_what_is_below_them, "host/store", "from ..worlds import land"),
    (rules.components_import_only_what_is_below_them, "host/__init__", "from .. import worlds"),
    (rules.components_import_only_what_is_below_them, "host/store", "import probebench"),
    (
        rules.components_import_only_what_is_below_them,
        "host/store",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from probebench.app import fit",
    ),
    (
        rules.components_import_only_what_is_below_them,
        "host/store",
        "import importlib\nimportlib.import_module('probebench.app.fit')",
    ),
    (
        rules.components_import_only_what_is_below_them,
        "host/store",
        "def late():\n    from probebench.app import fit",
    ),
    (
        rules.split_parts_never_import_each_other,
        "worlds/land",
        "from probebench.worlds.sea import shore",
    ),
    (rules.the_hidden_side_is_known_to_its_wiring_only, "worlds/sea/shore", "from . import truth"),
    (
        rules.the_hidden_side_is_known_to_its_wiring_only,
        "app/fit",
        "from probebench.worlds.sea.truth import WAVEFRONT",
    ),
    (rules.pure_components_touch_nothing_outside, "kernel/turn", "import os.path"),
    (rules.pure_components_touch_nothing_outside, "kernel/turn", "from time import monotonic"),
    (rules.pure_components_touch_nothing_outside, "kernel/turn", "import numpy as np"),
    (rules.pure_components_touch_nothing_outside, "kernel/turn", "def f():\n    return open('a')"),
    (rules.functions_import_only_what_is_listed, "host/store", "def f():\n    import socket"),
    (rules.functions_import_only_what_is_listed, "host/store", "async def f():\n    import socket"),
    (rules.functions_import_only_what_is_listed, "app/fit", "def f():\n    return 1"),
    (rules.modules_are_named_where_they_are_imported, "host/store", "__import__('o' + 's')"),
    (
        rules.private_names_stay_in_their_module,
        "host/store",
        "from probebench.kernel.turn import _HIDDEN",
    ),
    (rules.imports_form_no_cycle, "kernel/turn", "def f():\n    from probebench.host import store"),
]


def _tree_of(sources: dict[str, str], folder: Path) -> Path:
    package = folder / "probebench"
    for name, source in sources.items():
        path = package / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return package


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_a_tree_that_obeys_passes(rule: rules.Rule, tmp_path: Path) -> None:
    assert list(rule(TABLE, read_tree(_tree_of(OBEDIENT, tmp_path)))) == []


@pytest.mark.parametrize(("rule", "module", "source"), BREAKS)
def test_a_tree_that_breaks_a_rule_is_caught(
    rule: rules.Rule, module: str, source: str, tmp_path: Path
) -> None:
    # The store keeps its own import, so that a cycle can close through it.
    kept = OBEDIENT.get(module, "") if module.startswith(("host", "kernel")) else ""
    broken = {**OBEDIENT, module: f"{kept}{source}\n"}
    assert list(rule(TABLE, read_tree(_tree_of(broken, tmp_path)))) != []


def test_every_rule_has_a_tree_that_breaks_it() -> None:
    assert {rule for rule, _, _ in BREAKS} == set(rules.RULES)


def test_a_complaint_names_the_module_the_line_and_what_it_imports(tmp_path: Path) -> None:
    broken = {**OBEDIENT, "host/store": "import os\nimport probebench.app.fit\n"}
    (complaint,) = rules.components_import_only_what_is_below_them(
        TABLE, read_tree(_tree_of(broken, tmp_path))
    )
    assert complaint == (
        "probebench.host.store:2 imports probebench.app.fit; probebench.host may not import it"
    )
