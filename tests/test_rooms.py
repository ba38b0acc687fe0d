"""Other packages import of the rooms of benchmarks the modules and names that the room names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
ROOMS: Final = ("challenges", "model_runs", "organising", "submissions")
DISTRIBUTIONS: Final = ("core", "plugins", "tasks", "runners", "tui")


def imports_of(room: str) -> Iterator[tuple[str, str, str]]:
    """File, module and name of each import of a room by a module of another package."""
    for distribution in DISTRIBUTIONS:
        for path in sorted((ROOT / distribution).rglob("*.py")):
            if path.is_relative_to(ROOT / "core" / "collidium" / room):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"collidium.{room}."):
                    for name in node.names:
                        yield str(path.relative_to(ROOT)), str(node.module), name.name


def named_by(room: str) -> set[str]:
    tree = ast.parse((ROOT / "core" / "collidium" / room / "__init__.py").read_text())
    (names,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return set(ast.literal_eval(names))


@pytest.mark.parametrize("room", ROOMS)
def test_others_import_what_a_room_names(room: str) -> None:
    doors = named_by(room)
    past = [
        (path, module, name)
        for path, module, name in imports_of(room)
        if not (module == f"collidium.{room}" and name in doors) and not is_for_tables(path, module)
    ]
    assert not past
    used = {name for _, module, name in imports_of(room) if module == f"collidium.{room}"}
    assert used, f"nothing imports {room}"


def is_for_tables(path: str, module: str) -> bool:
    """Whether import-linter decides who reads these tables."""
    return module.endswith(".models")
