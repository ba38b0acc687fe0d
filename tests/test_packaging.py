"""What a user gets: the wheel, the source distribution, and the promises of pyproject.toml."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.metadata import PathDistribution, packages_distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.documents import ROOT

import collidium

PACKAGES = ("collidium", "collidium_tasks", "collidium_runners", "collidium_plugins", "collidium_tui")
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def build(source: Path, directory: Path, kind: str) -> Path:
    """Build with hatchling as it is installed here: isolation would download it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(directory)]
    done = subprocess.run(command, cwd=source, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = directory.iterdir()
    return built


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, tmp_path_factory.mktemp("sdist"), "sdist")


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel by name, with the lines of its list sorted."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return {
        name: b"".join(sorted(data.splitlines(keepends=True))) if name.endswith("/RECORD") else data
        for name, data in files.items()
    }


def test_the_wheel_has_every_package_with_its_types_and_data(wheel: Path) -> None:
    names = set(contents(wheel))
    tops = {name.split("/")[0] for name in names if ".dist-info" not in name}
    assert tops == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= names
    for table in ("tracker_hits", "particles", "calo_hits", "tracks"):
        assert f"collidium/demo/data/odd-ttbar-pu0/{table}.parquet" in names
    assert "collidium/demo/data/README.md" in names
    assert ("collidium/commit.txt" in names) == (ROOT / ".git").exists()
    assert [name for name in names if "__pycache__" in name or name.endswith(".pyc")] == []


def test_the_wheel_has_every_file_of_the_packages(wheel: Path) -> None:
    names = set(contents(wheel))
    for folder in PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        package = ROOT / folder
        for file in package.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts and not file.name.startswith("."):
                assert str(file.relative_to(package.parent)) in names


def test_the_wheel_has_the_licence_and_the_built_in_plugins(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (info,) = {name.split("/")[0] for name in archive.namelist() if ".dist-info/" in name}
        assert f"{info}/licenses/LICENSE" in archive.namelist()
        distribution = PathDistribution(zipfile.Path(archive, f"{info}/"))
        points = {point.name: point.value for point in distribution.entry_points.select(group="collidium")}
        (script,) = distribution.entry_points.select(group="console_scripts")
    assert points == PROJECT["entry-points"]["collidium"]
    assert (script.name, script.value) == ("collidium", "collidium.__main__:main")


def test_the_source_distribution_builds_the_same_wheel(wheel: Path, sdist: Path, tmp_path: Path) -> None:
    unpacked = tmp_path / "source"
    unpacked.mkdir()
    subprocess.run(["tar", "-xzf", str(sdist), "-C", str(unpacked)], check=True)
    (source,) = unpacked.iterdir()
    again = build(source, tmp_path / "again", "wheel")
    assert contents(again) == contents(wheel)


def test_the_source_distribution_has_what_it_takes_to_test_it(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"tox.ini", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "pyproject.toml"} <= names
    assert {"tests/conftest.py", "tests/minimum-versions.txt", "docs/plugins.md"} <= names
    assert [name for name in names if re.search(r"__pycache__|_cache/|\.sqlite3$|\.tox", name)] == []


def test_the_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (citation["version"], citation["license"]) == (collidium.__version__, PROJECT["license"])


def test_the_badges_are_true() -> None:
    badges = re.findall(r"img.shields.io/badge/(\S+)-blue\)", (ROOT / "README.md").read_text())
    oldest, licence = PROJECT["requires-python"].removeprefix(">="), PROJECT["license"].replace("-", "--")
    assert badges == [f"python-{oldest}%2B", f"licence-{licence}", "types-mypy%20strict"]
    assert PYPROJECT["tool"]["mypy"]["strict"]


def test_the_oldest_versions_tested_are_the_oldest_allowed() -> None:
    lines = (ROOT / "tests/minimum-versions.txt").read_text().splitlines()
    tested = [line for line in lines if line and not line.startswith("#")]
    allowed = [re.sub(r",.*", "", requirement).replace(">=", "==") for requirement in PROJECT["dependencies"]]
    assert tested == allowed


SERVER = "pydantic quart tortoise"


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        ("collidium", f"{SERVER} authlib joserfc numpy pyarrow huggingface_hub httpx textual rich"),
        ("collidium.testing.task_suite", "pytest _pytest"),
        (
            "collidium.datasets",
            f"{SERVER} acts pythia8mc pythia8 pandas polars awkward huggingface_hub datasets httpx rich",
        ),
        ("collidium.inference.running, collidium.inference.timing", "onnx onnxruntime scipy quart tortoise"),
        ("collidium_plugins.executor_processes", f"{SERVER} numpy pyarrow"),
    ],
)
def test_imports_load_no_heavy_packages(imported: str, absent: str) -> None:
    code = f"import sys, {imported}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert "collidium" in loaded
    assert loaded.isdisjoint(absent.split())


def test_nothing_that_users_run_needs_pytest() -> None:
    """pytest is not installed with the platform, so only its testing package may import it."""
    needs = re.compile(
        r"^\s*(from|import) (collidium\.testing(?!\.(task_suite|task_template)\b)|pytest)\b", re.MULTILINE
    )
    for folder in PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]:
        for file in (ROOT / folder).rglob("*.py"):
            if not file.is_relative_to(ROOT / "core/collidium/testing"):
                assert not needs.search(file.read_text()), file


def test_the_option_of_pytest_costs_other_people_nothing() -> None:
    """pytest loads it wherever the platform is installed."""
    imports = "import collidium.testing.task_option"
    code = f"import pytest, sys; before = set(sys.modules); {imports}; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    brought = done.stdout.split()
    assert brought
    assert [name for name in brought if not name.startswith("collidium")] == []


#: What users bring for their own work; it is imported where they ask for it.
BROUGHT = {"grain", "matplotlib", "torch"}


def test_every_imported_distribution_is_declared() -> None:
    """Also those that another dependency installs today."""
    extras = [line for lines in PROJECT["optional-dependencies"].values() for line in lines]
    names = (re.split(r"[^\w.-]", line)[0] for line in [*PROJECT["dependencies"], *extras])
    declared = {re.sub(r"[-_.]+", "-", name).lower() for name in names}
    distributions = packages_distributions()
    undeclared = {
        f"{name} ({file.relative_to(ROOT)})"
        for folder in PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
        for file in (ROOT / folder).rglob("*.py")
        for name in imported(file) - set(sys.stdlib_module_names) - set(PACKAGES) - BROUGHT
        if not declared & {re.sub(r"[-_.]+", "-", one).lower() for one in distributions.get(name, [name])}
    }
    assert undeclared == set()


def imported(file: Path) -> set[str]:
    """The top-level packages that a file imports, anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found
