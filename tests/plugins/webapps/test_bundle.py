"""The vendored modules match the lock file, with their licences."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
from tests.needs import Needs

from . import node

ROOT: Final = Path(__file__).parents[3]
WEB: Final = ROOT / "web"
VENDOR: Final = ROOT / "plugins/collidium_plugins/webapps/static/vendor"


@pytest.fixture(scope="module")
def manifest() -> dict[str, dict[str, Any]]:
    return json.loads((VENDOR / "manifest.json").read_text())


def test_every_module_has_its_hash_in_the_manifest(manifest: dict[str, dict[str, Any]]) -> None:
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in VENDOR.glob("*.js")}

    assert files == {name: entry["sha256"] for name, entry in manifest.items()}


def test_versions_are_locked_and_licences_are_included(
    manifest: dict[str, dict[str, Any]],
) -> None:
    locked = json.loads((WEB / "package-lock.json").read_text())["packages"]
    licences = (VENDOR / "licences.txt").read_text()

    for entry in manifest.values():
        assert entry["packages"]
        for package, version in entry["packages"].items():
            assert locked[f"node_modules/{package}"]["version"] == version
            assert f"{package} {version} (" in licences


def test_the_lock_file_names_packages_by_content_and_no_host() -> None:
    text = (WEB / "package-lock.json").read_text()
    packages = json.loads(text)["packages"]

    assert "://" not in text
    assert all("integrity" in entry for name, entry in packages.items() if name)


@pytest.mark.parametrize("name", ["three.js", "flechette.js", "hyparquet.js"])
def test_nothing_in_it_makes_code_out_of_text(name: str) -> None:
    """The content security policy would refuse it, in the middle of a user's work."""
    text = (VENDOR / name).read_text()

    assert "new Function(" not in text
    assert "eval(" not in text


def test_the_modules_were_built_from_these_sources() -> None:
    names = ["build.mjs", "package-lock.json", "package.json"]
    sources = [WEB / name for name in names] + sorted((WEB / "vendored").iterdir())
    built_from = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()

    assert (VENDOR / "sources.sha256").read_text().strip() == built_from, (
        "run: cd web && npm ci && npm run build"
    )


@pytest.mark.long
def test_building_again_gives_the_same_bytes(needs: Needs, tmp_path: Path) -> None:
    needs("npm")
    npm = node.program("npm")
    source, built = tmp_path / "web", tmp_path / "built"
    shutil.copytree(WEB, source, ignore=shutil.ignore_patterns("node_modules"))
    environment = {**os.environ, "PATH": node.PATH, "npm_config_update_notifier": "false"}

    installed = subprocess.run(
        [npm, "ci"], cwd=source, env=environment, capture_output=True, text=True, check=False
    )
    assert installed.returncode == 0, installed.stderr
    subprocess.run(
        [npm, "run", "build", "--", str(built)], cwd=source, env=environment, check=True, capture_output=True
    )

    assert {path.name: path.read_bytes() for path in built.iterdir()} == {
        path.name: path.read_bytes() for path in VENDOR.iterdir()
    }
