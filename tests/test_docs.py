"""The documents are true: nothing public is missing in them, and nothing in them has gone."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from docs import console_pictures, make_pictures, web_pictures
from docs.make_seed_table import PAGE as SEED_PAGE
from docs.make_seed_table import seed_page
from docs.make_settings import PAGE, settings_page
from tests.documents import ROOT, code_blocks, headings

import collidium
from collidium import hookspecs, settings
from collidium.api.app import create_app
from collidium.datasets.schemas import ALIASES
from collidium.testing import conformance
from collidium.testing.server import run_command

DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
HOOKS = [name for name in vars(hookspecs) if name.startswith("collidium_")]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_is_documented_with_an_example_and_has_a_test(hook: str) -> None:
    page = ROOT / "docs/plugins.md"
    assert hook in headings(page)
    examples = [b.code for b in code_blocks(page) if b.section == hook and b.language == "python"]
    assert any(f"@hookimpl\ndef {hook}(" in example for example in examples)
    tests = (ROOT / "tests/core/test_plugins.py").read_text()
    assert re.search(rf"^(async )?def test_hook_{hook}\(", tests, re.MULTILINE)


def test_no_hook_is_documented_that_does_not_exist() -> None:
    documented = [
        heading for heading in headings(ROOT / "docs/plugins.md") if heading.startswith("collidium_")
    ]
    assert sorted(documented) == sorted(HOOKS)


def test_the_call_that_checks_each_contract_is_documented() -> None:
    page = (ROOT / "docs/plugins.md").read_text()
    for name in conformance.__all__:
        assert name == "Nonconforming" or f"{name}(" in page, name


def test_the_page_of_settings_is_current() -> None:
    assert settings_page() == PAGE.read_text(), "run: python docs/make_settings.py"


def test_the_table_of_sizes_is_what_seed_plans() -> None:
    assert seed_page() == SEED_PAGE.read_text(), "run: python docs/make_seed_table.py"


def test_no_setting_is_promised_that_does_not_exist() -> None:
    real = {f"{settings.PREFIX}{name.upper()}" for name in settings.Settings.model_fields}
    contracts = (ROOT / "core/collidium/contracts").glob("*.py")
    for file in [*DOCUMENTS, ROOT / "core/collidium/hookspecs.py", *contracts]:
        promised = set(re.findall(rf"\b{settings.PREFIX}[A-Z][A-Z0-9_]*", file.read_text()))
        assert promised <= real | settings.CLIENT_NAMES | settings.RENAMED.keys(), file.name


def test_the_page_of_datasets_shows_all_names_that_columns_have() -> None:
    page = (ROOT / "docs/datasets.md").read_text()
    for table, columns in ALIASES.items():
        assert f"`{table}`" in page
        for name in {name for names in columns.values() for name in names}:
            assert f"`{name}`" in page, name


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", document.read_text()):
        if not target.startswith(("http://", "https://")):
            path, _, anchor = target.partition("#")
            linked = (document.parent / path).resolve() if path else document
            assert linked.exists(), f"{document.name} links to {target}"
            if anchor:
                anchors = {heading.lower().replace(" ", "-") for heading in headings(linked)}
                assert anchor in anchors, f"{document.name} links to {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_python_example_is_python(document: Path) -> None:
    for block in code_blocks(document):
        if block.language == "python":
            compile(block.code, f"{document.name}:{block.line}", "exec")


def test_every_call_of_the_api_is_documented(tmp_path: Path) -> None:
    documented = re.findall(
        r"^\| `((?:GET|POST|PUT|PATCH|DELETE) /[^`]+)` ", (ROOT / "docs/api.md").read_text(), re.MULTILINE
    )
    app = create_app(settings.load(data_dir=tmp_path))
    offered = [
        f"{method} {rule.rule.replace('<path:', '<').replace('<', '{').replace('>', '}')}"
        for rule in app.url_map.iter_rules()
        if rule.rule.startswith(("/v1/", "/admin/", "/healthz", "/readyz"))
        for method in (rule.methods or set()) & {"GET", "POST", "PUT", "PATCH", "DELETE"}
    ]
    assert sorted(documented) == sorted(offered)


@pytest.mark.long
def test_the_pictures_can_be_made_again(tmp_path: Path) -> None:
    make_pictures.make(tmp_path)
    console_pictures.make(tmp_path)
    web_pictures.make(tmp_path)
    made = {picture.name for picture in tmp_path.iterdir()}
    # The detector's material is drawn by make_material.py, whose numbers have tests of their own.
    assert made | {"material.png"} == {picture.name for picture in (ROOT / "docs/pictures").iterdir()}
    assert "trackml_weighted_efficiency" in (tmp_path / "demo.svg").read_text()
    for picture in tmp_path.glob("*.svg"):
        assert "@font-face" not in picture.read_text(), "a picture fetches nothing"


def test_the_changelog_has_this_version() -> None:
    assert collidium.__version__ in headings(ROOT / "CHANGELOG.md")


def test_every_performance_script_is_smoked_or_left_out() -> None:
    tox = (ROOT / "tox.ini").read_text()
    for script in sorted((ROOT / "perf").glob("*.py")):
        if "__main__" in script.read_text() and script.stem != "__main__":
            assert f"perf/{script.name} " in tox, script.name


def test_performance_scripts_can_be_imported(tmp_path: Path) -> None:
    """What `tox -e perf-smoke` runs: names that are gone are found here, too."""
    scripts = sorted(path.stem for path in (ROOT / "perf").glob("*.py"))
    (tmp_path / "all.py").write_text(f"import {', '.join(scripts)}")
    done = run_command([], os.environ, ROOT / "perf", (sys.executable, str(tmp_path / "all.py")))
    assert done.returncode == 0, done.stderr


def test_nothing_names_a_place_where_packages_are_kept() -> None:
    """Where packages come from is the installer's business: a mirror has to do as well."""
    registries = re.compile(r"py[p]i\.org|python[h]osted|registry\.npm[j]s|deb\.debia[n]\.org")
    for file in [*DOCUMENTS, ROOT / "tox.ini", ROOT / "pyproject.toml", ROOT / ".ci/run"]:
        assert not registries.search(file.read_text()), file
