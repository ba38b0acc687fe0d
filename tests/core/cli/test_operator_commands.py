"""task, truth, plugin, db and ledger, on a machine of their own."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests.core.cli.conftest import RunCommand
from tests.distributions import install

from collidium.demo import EVENTS_DIRECTORY

TASK = """
from dataclasses import replace
from collidium.hookspecs import hookimpl
from collidium_tasks.tracking import TrackingTask

class Other(TrackingTask):
    card = replace(TrackingTask.card, name="other", title="Another task")

@hookimpl
def collidium_tasks():
    return [Other()]
"""


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "data" / "collidium.sqlite3"


def test_tasks_are_listed_added_and_removed(collidium: RunCommand, site: Path) -> None:
    install(site, "other-task", {"other_task": TASK})
    tasks = {task["name"]: task for task in collidium.data("task", "list")}
    listed = {name for name, task in tasks.items() if task["listed"]}
    assert listed == {"tracking", "jets", "anomaly", "tracking_latency", "tracking_small", "data_loading"}
    assert (tasks["other"]["listed"], tasks["other"]["distribution"]) == (False, "other-task")
    added = collidium("task", "add", "other")
    assert added.returncode == 0
    assert "Task other is listed." in added.stderr
    assert "no truth yet" in added.stderr
    assert "Restart servers" in added.stderr
    assert collidium.data("task", "show", "other")["status"]["listed"]
    assert not collidium.data("task", "remove", "other")["listed"]
    assert "other-task" in collidium("task", "list").stdout


def test_a_card(collidium: RunCommand) -> None:
    shown = collidium("task", "show", "tracking").stdout
    for part in (
        *("trackml_weighted_efficiency", "event_id", "ttbar_pu200", "90000:100000", "tracker_hits"),
        *("(primary)", "floor", "no: no truth yet"),
    ):
        assert part in shown
    card = collidium.data("task", "show", "tracking")["card"]
    assert card["eval_events"] == {"start": 90000, "stop": 100000}


@pytest.mark.parametrize("command", ["show", "add", "remove"])
def test_a_task_that_is_not_there(collidium: RunCommand, command: str) -> None:
    done = collidium("task", command, "nothing")
    assert done.returncode == 3
    assert "nothing" in done.stderr


def test_truth_is_imported_and_listed(collidium: RunCommand) -> None:
    source = ("--from", str(EVENTS_DIRECTORY), "--config", "ttbar_pu0")
    record = collidium.data("truth", "import", "tracking", *source, "--events", "3:5")
    assert record["events"] == {"start": 3, "stop": 5}
    assert record["current"]
    assert collidium.data("truth", "list") == [record]
    assert record["version"] in collidium("truth", "list").stdout
    assert collidium.data("task", "show", "tracking")["status"]["reason"] is None


def test_truth_that_cannot_be_imported(collidium: RunCommand, tmp_path: Path) -> None:
    source = ("--from", str(EVENTS_DIRECTORY), "--config", "ttbar_pu0")
    lacking = collidium("truth", "import", "tracking", *source, "--events", "3:9")
    assert lacking.returncode in (1, 3)
    assert "lacks 4 of the 6 events" in lacking.stderr
    nowhere = collidium("truth", "import", "tracking", "--from", str(tmp_path / "nowhere"), "--events", "3:5")
    assert nowhere.returncode in (1, 3)
    assert "Traceback" not in lacking.stderr + nowhere.stderr
    assert collidium.data("truth", "list") == []


def test_plugins_are_listed_with_what_they_bring(collidium: RunCommand, site: Path) -> None:
    install(site, "broken", {"broken": "raise RuntimeError('out of order')"})
    install(site, "thief", {"thief": TASK.replace('"other"', '"tracking"')})
    plugins = {plugin["name"]: plugin for plugin in collidium.data("plugin", "list")["plugins"]}
    assert plugins["tracking"]["brings"] == ["task tracking"]
    broken = plugins["broken"]
    assert (broken["state"], broken["error"]) == ("failed", "RuntimeError: out of order")
    done = collidium("plugin", "list")
    assert done.returncode == 0
    assert "RuntimeError: out of order" in done.stdout
    assert "task 'tracking' of plugin 'thief' is refused" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_plugin_is_reported_and_skipped(collidium: RunCommand, site: Path) -> None:
    install(site, "broken", {"broken": "raise RuntimeError('out of order')"})
    done = collidium("task", "list")
    assert done.returncode == 0
    assert done.stderr == "Warning: plugin 'broken' of broken: RuntimeError: out of order\n"


# -- database and ledger ------------------------------------------------------------------------------------


def test_the_schema_is_checked_and_brought_up(collidium: RunCommand) -> None:
    fresh = collidium("db", "check")
    assert fresh.returncode == 1
    assert "collidium db migrate" in fresh.stdout
    assert collidium("db", "migrate").returncode == 0
    assert collidium("db", "migrate").returncode == 0
    assert collidium.data("db", "check") == {"problems": []}


def test_a_schema_of_a_newer_release_is_refused(collidium: RunCommand, database: Path) -> None:
    collidium("db", "migrate")
    with sqlite3.connect(database) as connection:
        query = "SELECT name FROM sqlite_master WHERE name LIKE '%migrations%'"
        ((table, *_), *_) = connection.execute(query).fetchall()
        connection.execute(
            f"INSERT INTO {table} (app, name, applied_at) "
            "VALUES ('collidium', '9999_from_the_future', '2030-01-01 00:00:00')"
        )
    connection.close()
    assert "9999_from_the_future" in collidium("db", "check").stdout
    for arguments in (("db", "migrate"), ("task", "list"), ("serve", "--port", "0")):
        done = collidium(*arguments)
        assert done.returncode == 1
        assert "9999_from_the_future" in done.stderr
        assert "Traceback" not in done.stderr


def test_the_ledger_is_audited(collidium: RunCommand, database: Path) -> None:
    assert collidium("ledger", "audit").stdout == (
        "Every balance is the sum of its entries.\nEvery running total is the sum of its requests.\n"
    )
    with sqlite3.connect(database) as connection:
        connection.execute(
            "INSERT INTO accounts (hub_username, name_key, credits, banned, baseline, created_at) "
            "VALUES ('forger', 'forger', '7.000', 0, 0, '2026-01-01 00:00:00')"
        )
    connection.close()
    done = collidium("ledger", "audit", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["mismatches"] == [
        {"hub_username": "forger", "balance": 7.0, "entries_sum": 0.0}
    ]
    assert "forger" in collidium("ledger", "audit").stdout
