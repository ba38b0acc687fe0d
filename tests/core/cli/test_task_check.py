"""``collidium task check``: the conformance suite with a verdict for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
from tests.core.cli.conftest import RunCommand
from tests.core.testing import faulty_tasks
from tests.distributions import install
from tests.documents import ROOT

from collidium.testing.task_suite import CHECKS

PLUGIN = """
from dataclasses import replace
from collidium.hookspecs import hookimpl
from faulty_tasks import FAULTS, Good

@hookimpl
def collidium_tasks():
    tasks = [Good, *FAULTS]
    for task in tasks:
        task.card = replace(task.card, name=task.__name__.lower())
    return [task() for task in tasks]
"""


def install_tasks(site: Path, directory: Path) -> None:
    """The suite's own broken tasks as an installed plugin, and their events in ``directory``."""
    source = (ROOT / "tests/core/testing/faulty_tasks.py").read_text()
    install(site, "faulty", {"faulty_tasks": source, "faulty_plugin": PLUGIN}, {"faulty": "faulty_plugin"})
    directory.mkdir()
    for name, table in faulty_tasks.dataset().items():
        pq.write_table(table, directory / f"{name}.parquet")


def test_a_task_that_conforms_and_one_that_does_not(
    collidium: RunCommand, site: Path, tmp_path: Path
) -> None:
    install_tasks(site, tmp_path / "events")
    events = ("--from", str(tmp_path / "events"))
    good = collidium("task", "check", "good", *events)
    assert good.returncode == 0, good.stderr
    assert f"Task good keeps all {len(CHECKS)} promises." in good.stderr
    assert good.stdout.count("\nkept ") == len(CHECKS)
    assert not (tmp_path / ".hypothesis").exists(), "nothing is left where the command was called"

    bad = collidium("task", "check", "wideids", *events)
    assert bad.returncode == 1
    assert "truth_is_well_formed: event_id of truth table 'answers' must be uint32, not int64" in bad.stderr
    assert "Task wideids breaks 1 of " in bad.stderr
    assert "cannot be checked until that is fixed." in bad.stderr
    assert "Traceback" not in bad.stderr

    document = json.loads(collidium("task", "check", "wideids", *events, "--json").stdout)
    assert (document["conforms"], document["events"]) == (False, [7, 8, 9, 10, 11])
    states = {check["name"]: check["state"] for check in document["checks"]}
    assert states["truth_is_well_formed"] == "broken"
    assert states["scoring_is_deterministic"] == "not checked"


def test_what_cannot_be_checked_is_said(collidium: RunCommand, tmp_path: Path) -> None:
    unknown = collidium("task", "check", "nowhere")
    assert unknown.returncode == 3
    assert "no installed plugin provides a task 'nowhere' (installed: " in unknown.stderr
    empty = collidium("task", "check", "tracking", "--from", str(tmp_path / "nothing"))
    assert empty.returncode == 1
    assert "there is no directory" in empty.stderr
    (tmp_path / "torn.parquet").write_bytes(b"PAR1 and no more")
    torn = collidium("task", "check", "tracking", "--predictions", str(tmp_path / "torn.parquet"))
    assert torn.returncode == 3
    assert "torn.parquet cannot be read as parquet" in torn.stderr
