"""The lists of forbidden imports leave nothing out: a new module is forbidden until someone decides."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
from tests.documents import ROOT

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
FORBIDDEN: dict[str, set[str]] = {
    contract["name"]: set(contract["forbidden_modules"])
    for contract in PROJECT["tool"]["importlinter"]["contracts"]
    if contract["type"] == "forbidden"
}


def children_of_the_core() -> set[str]:
    core = ROOT / "core/collidium"
    return {
        f"collidium.{_module(path)}"
        for path in core.iterdir()
        if path.name != "__init__.py" and (path.suffix == ".py" or (path / "__init__.py").exists())
    }


def _module(path: Path) -> str:
    return path.name.removesuffix(".py")


def dependencies() -> set[str]:
    """Packages that the distribution's own dependencies install."""
    wanted = {_canonical(re.split(r"[^\w.-]", line)[0]) for line in PROJECT["project"]["dependencies"]}
    return {
        package
        for package, distributions in packages_distributions().items()
        if package.isidentifier() and wanted & set(map(_canonical, distributions))
    }


def _canonical(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


@pytest.mark.parametrize(
    ("contract", "allowed"),
    [
        (
            "The console talks to the platform through the client alone",
            {f"collidium.{name}" for name in ("client", "errors", "hookspecs", "overrides", "presentation")},
        ),
        (
            "Tasks know contracts, hooks, physics, numpy and pyarrow",
            {"collidium.contracts", "collidium.hookspecs", "collidium.physics"},
        ),
        (
            "The pages ask the platform as everybody does",
            {
                f"collidium.{name}"
                for name in (
                    *("api", "cli", "client", "errors", "files", "hookspecs"),
                    *("hub", "presentation", "runtime", "secrets", "server", "sessions", "settings"),
                )
            },
        ),
    ],
)
def test_every_other_part_of_the_core_is_forbidden(contract: str, allowed: set[str]) -> None:
    assert children_of_the_core() - allowed == {m for m in FORBIDDEN[contract] if m.startswith("collidium.")}


def test_tasks_may_import_no_other_dependency_of_the_platform() -> None:
    others = {name for name in dependencies() if not name.startswith("_")} - {"numpy", "pyarrow"}
    # pluggy comes with the hooks.
    assert others - {"pluggy"} <= FORBIDDEN["Tasks know contracts, hooks, physics, numpy and pyarrow"]
