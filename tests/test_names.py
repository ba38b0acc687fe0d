"""Two classes that a reader of one module may meet have two names."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
DISTRIBUTIONS: Final = ("core", "plugins", "tasks", "runners", "tui")
#: What modules of the other distributions may import of the core, where it is not all of it.
SEEN_OF_CORE: Final = {
    "tasks": ("collidium.contracts", "collidium.hookspecs", "collidium.physics"),
    "tui": ("collidium.client", "collidium.hookspecs", "collidium.presentation", "collidium.testing"),
}
#: Packages of one distribution that do without each other.
APART: Final = frozenset({"collidium_plugins.local_hub", "collidium_plugins.webapps"})
#: Each with its reason; at most ten.
EXCEPTIONS: Final = {
    "EventDataset": "the same for two libraries, which name it so",
    "JobProgress": "a contract, and its record in the API",
    "Metric": "a contract, and its record in the API",
    "Migration": "the name that Tortoise ORM looks for",
    "Problem": "a contract, and the schema of problem documents in the API",
}


def classes() -> Iterator[tuple[str, str, bool]]:
    """Module and name of each public class of the product, and whether it is a table."""
    for distribution in DISTRIBUTIONS:
        for path in sorted((ROOT / distribution).rglob("*.py")):
            if "task_template" in path.parts:
                continue
            module = ".".join(path.relative_to(ROOT / distribution).with_suffix("").parts)
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield module, node.name, any(ast.unparse(base) == "Model" for base in node.bases)


def meet(one: str, other: str) -> bool:
    """Whether a module may import both modules."""
    homes = {one.partition(".")[0], other.partition(".")[0]}
    if len(homes) == 1:
        return {".".join(module.split(".")[:2]) for module in (one, other)} != APART
    if "collidium" not in homes:
        return False
    away = (homes - {"collidium"}).pop().removeprefix("collidium_")
    in_core = one if one.startswith("collidium.") else other
    seen = SEEN_OF_CORE.get(away)
    return seen is None or in_core.startswith(seen)


def test_names_of_classes_are_used_once() -> None:
    """Except for a table and its record, which always have one name."""
    found = defaultdict(list)
    for module, name, is_table in classes():
        found[name].append((module, is_table))
    twice = {
        name: sorted({one, other})
        for name, places in found.items()
        for (one, is_table), (other, is_other_table) in combinations(places, 2)
        if meet(one, other)
        and not (is_table and other.startswith("collidium.records"))
        and not (is_other_table and one.startswith("collidium.records"))
    }
    assert {name: twice[name] for name in twice.keys() - EXCEPTIONS.keys()} == {}
    assert EXCEPTIONS.keys() - twice.keys() == set()
    assert len(EXCEPTIONS) <= 10
