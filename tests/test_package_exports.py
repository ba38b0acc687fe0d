"""Other packages import of the packages of benchmarks the modules and names that these name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parent.parent
PACKAGES: Final = ("challenges", "model_runs", "organising", "submissions")
DISTRIBUTIONS: Final = ("core", "plugins", "tasks", "runners", "tui")


def imports_of(package: str) -> Iterator[tuple[str, str, str]]:
    """File, module and name of each import of a package by a module of another package."""
    for distribution in DISTRIBUTIONS:
        for path in sorted((ROOT / distribution).rglob("*.py")):
            if path.is_relative_to(ROOT / "core" / "collidium" / package):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                for module, name in imported(node):
                    if f"{module}.".startswith(f"collidium.{package}."):
                        yield str(path.relative_to(ROOT)), module, name


def imported(node: ast.AST) -> list[tuple[str, str]]:
    """Module and name of what a statement imports; the name is empty for a module of its own."""
    if isinstance(node, ast.ImportFrom):
        return [(str(node.module), name.name) for name in node.names]
    return [(name.name, "") for name in node.names] if isinstance(node, ast.Import) else []


def named_by(package: str) -> set[str]:
    tree = ast.parse((ROOT / "core" / "collidium" / package / "__init__.py").read_text())
    (names,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return set(ast.literal_eval(names))


@pytest.mark.parametrize("package", PACKAGES)
def test_others_import_what_a_package_names(package: str) -> None:
    exported = named_by(package)
    past = [
        (path, module, name)
        for path, module, name in imports_of(package)
        if not (module == f"collidium.{package}" and name in exported) and not is_for_tables(path, module)
    ]
    assert not past
    used = {name for _, module, name in imports_of(package) if module == f"collidium.{package}"}
    assert used, f"nothing imports {package}"


def is_for_tables(path: str, module: str) -> bool:
    """Whether import-linter decides who reads these tables."""
    return module.endswith(".models")
