"""simulate, status, cancel, requests, estimate, presets, admin and worker, as they are typed."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
from tests.core.cli.conftest import Caller
from tests.waiting import eventually

from collidium.client import NO_EVENTS
from collidium.testing.server import ServerProcess

_seeds = count(1)

MUONS = ("--remote", "--channel", "single_muon", "--events", "10", "--pileup", "0")


class Alice(Caller):
    def order(self) -> str:
        return str(self.data("simulate", *MUONS, "--seed", str(next(_seeds)))["request_id"])


@contextmanager
def platform(directory: Path, **env: str) -> Iterator[Alice]:
    with ServerProcess(directory, env=env) as server:
        yield Alice(server, "alice")


@pytest.fixture(scope="module")
def alice(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alice]:
    env = {"PLATFORM_MOCK_SECONDS": "0.3", "PLATFORM_BURST_REQUESTS": "1000"}
    with platform(tmp_path_factory.mktemp("server"), **env) as running:
        yield running


def test_order_and_wait(alice: Alice) -> None:
    done = alice("simulate", "--remote", "--preset", "ttbar-quick", "--wait")
    assert done.returncode == 0, done.stderr
    output = done.stderr.splitlines()
    assert NO_EVENTS in output.pop(0)  # before anything is ordered
    assert "is queued; 0.333 credits were charged" in output[0]
    assert output[-1] == "completed"
    for shown in ("10 events of ttbar at pileup 0, seed 42", "completed", "0.333 charged", NO_EVENTS):
        assert shown in done.stdout
    request_id = done.stdout.split()[1]
    assert request_id in output[0]
    again = alice("simulate", "--remote", "--channel", "ttbar", "--events", "10", "--pileup", "0", "--wait")
    assert again.returncode == 0
    assert request_id in again.stdout
    assert "cost nothing" in again.stderr


@pytest.mark.parametrize("command", [("estimate", "--preset", "ttbar-quick"), ("limits",)])
def test_a_mock_is_named_before_an_order(alice: Alice, command: tuple[str, ...]) -> None:
    assert NO_EVENTS in alice(*command).stdout
    assert alice.data(*command)["runner_is_mock"] is True


def test_json(alice: Alice) -> None:
    done = alice("simulate", *MUONS, "--seed", str(next(_seeds)), "--private", "--wait", "--json")
    assert done.returncode == 0
    request = json.loads(done.stdout)
    assert (request["state"], request["private"], request["cached"]) == ("completed", True, False)
    assert [moment["state"] for moment in request["timeline"]] == ["queued", "running", "completed"]
    assert alice.data("status", request["request_id"]) == request


def test_without_wait_the_status_command_is_shown(alice: Alice) -> None:
    done = alice("simulate", *MUONS, "--seed", str(next(_seeds)))
    assert done.returncode == 0
    request_id = done.stdout.split()[1]
    assert f"collidium status {request_id}" in done.stderr
    eventually(lambda: alice.data("status", request_id)["state"] == "completed")
    shown = alice("status", request_id).stdout
    for part in ("Timeline", "queued", "running", "completed"):
        assert part in shown


def test_what_the_server_refuses(alice: Alice) -> None:
    for arguments in (
        ("simulate", "--remote", "--channel", "nothing", "--events", "0", "--pileup", "-1"),
        ("simulate", "--remote", "--preset", "nothing"),
        ("status", "nothing"),
        ("cancel", "nothing"),
        ("estimate", "--channel", "nothing", "--events", "1", "--pileup", "0"),
        ("admin", "channels", "--month", "2026-13"),
    ):
        done = alice(*arguments)
        assert done.returncode == 3, arguments
        assert "\nError: " in f"\n{done.stderr}"
        assert done.stdout == ""
    refused = alice(
        "simulate", "--remote", "--channel", "nothing", "--events", "0", "--pileup", "0", "--json"
    )
    assert {problem["field"] for problem in json.loads(refused.stderr)["errors"]} == {"channel", "events"}
    assert alice("requests", PLATFORM_BACKEND="http://127.0.0.1:9").returncode == 4
    assert alice("admin", "usage", ADMIN_TOKEN="wrong").returncode == 3


def test_what_is_there_is_listed(alice: Alice) -> None:
    request_id = alice.order()
    assert alice.data("requests", "--limit", "1")[0]["request_id"] == request_id
    assert request_id in alice("requests").stdout
    eventually(lambda: alice.data("requests", "--limit", "1", "--state", "completed") != [])
    assert alice.data("requests", "--state", "failed") == []
    presets = {preset["name"]: preset for preset in alice.data("presets")}
    assert presets["ttbar-quick"]["credits"] == 0.333
    assert "ttbar-quick" in alice("presets").stdout
    limits = alice.data("limits")
    assert {preset["channel"] for preset in presets.values()} <= set(limits["channels"])
    assert f"1 to {limits['events']['maximum']}" in alice("limits").stdout


def test_estimates(alice: Alice) -> None:
    parameters = ("--channel", "ttbar", "--events", "100", "--pileup", "40")
    assert alice.data("estimate", *parameters) == alice.data("estimate", "--preset", "ttbar-dev")
    shown = alice("estimate", *parameters).stdout
    assert "4.583" in shown
    unknown = alice("estimate", "--preset", "nothing")
    assert unknown.returncode == 2
    assert "ttbar-quick" in unknown.stderr


def test_reports(alice: Alice) -> None:
    alice("simulate", *MUONS, "--seed", str(next(_seeds)), "--wait")
    usage = alice.data("admin", "usage")
    assert [user["hub_username"] for user in usage["users"]] == ["alice"]
    assert "alice" in alice("admin", "usage").stdout
    assert sum(c["requests"] for c in alice.data("admin", "channels")) == usage["total_requests"]
    assert "single_muon" in alice("admin", "channels").stdout
    assert len(alice.data("admin", "daily", "--days", "3")) == 3
    assert len(alice("admin", "daily", "--days", "3").stdout.splitlines()) == 4
    assert alice.data("admin", "failures")["failed"] == 0
    assert "0.0 %" in alice("admin", "failures").stdout
    (newest,) = alice.data("admin", "requests", "--limit", "1", "--user", "alice")
    assert newest["state"] == "completed"
    assert "alice" in alice("admin", "requests").stdout


def test_on_a_terminal_a_line_lives_while_it_waits(alice: Alice) -> None:
    shown = alice.terminal_output("simulate", *MUONS, "--seed", str(next(_seeds)), "--wait")
    for part in ("queued", "0:00:0", "\x1b["):
        assert part in shown


def test_ctrl_c_leaves_the_request_alone(alice: Alice, tmp_path: Path) -> None:
    with platform(tmp_path / "slow", PLATFORM_MOCK_SECONDS="100000") as slow:
        process = subprocess.Popen(
            [sys.executable, "-m", "collidium", "simulate", *MUONS, "--wait"],
            env=slow.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        _, *first = [process.stderr.readline() for _ in range(3)]  # the mock is named first
        process.send_signal(signal.SIGINT)
        output = process.stderr.read()
        process.stderr.close()
        assert process.wait(60) == 130
        request_id = first[0].split()[1]
        assert first[1] == "queued\n"
        assert f"The request continues: collidium status {request_id}" in output
        assert slow.data("status", request_id)["state"] == "queued"


def test_a_failed_request_ends_with_1_and_its_reason(tmp_path: Path) -> None:
    with platform(tmp_path / "failing", PLATFORM_MOCK_SECONDS="0", PLATFORM_MOCK_OUTCOME="failed") as failing:
        done = failing("simulate", *MUONS, "--wait")
        assert done.returncode == 1
        assert "failed: the mock runner is set to fail" in done.stderr
        assert "0.014 charged, 0.014 refunded" in done.stdout


# -- on the server's machine ----------------------------------------------------------------------------


def test_a_worker_follows_requests_instead_of_servers(tmp_path: Path) -> None:
    with platform(
        tmp_path / "server", PLATFORM_MOCK_SECONDS="100000", PLATFORM_FOLLOW_REQUESTS="false"
    ) as alone:
        request_id = alone.order()
        cancelled = alone("cancel", request_id)
        assert cancelled.returncode == 0
        assert "is being cancelled" in cancelled.stdout
        assert "queued (being cancelled)" in alone("status", request_id).stdout
        worker = subprocess.Popen(
            [sys.executable, "-m", "collidium", "worker"],
            env=alone.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert worker.stdout is not None
        assert worker.stdout.readline() == "Following requests.\n"
        eventually(lambda: alone.data("status", request_id)["state"] == "cancelled")
        assert f"Request {request_id} is cancelled." in alone("cancel", request_id).stdout
        worker.terminate()
        assert worker.wait(60) == 0
        worker.stdout.close()


def test_totals_that_are_not_what_they_count_are_found(tmp_path: Path) -> None:
    with platform(tmp_path / "server", PLATFORM_MOCK_SECONDS="100000") as falsified:
        falsified.order()
        falsified.server.stop()
        whole = falsified("ledger", "audit")
        assert whole.returncode == 0
        assert "Every running total is the sum of its requests." in whole.stdout
        with closing(sqlite3.connect(falsified.server.data_dir / "collidium.sqlite3")) as database:
            database.execute("UPDATE usage_totals SET milli_node_hours = 7 WHERE kind = 'channel'")
            database.commit()
        done = falsified("ledger", "audit")
        assert done.returncode == 1
        assert "single_muon" in done.stdout
        assert "1 requests, 0.014 node-hours" in done.stdout
        assert "Every balance is the sum of its entries." in done.stdout
        found = falsified("ledger", "audit", "--json")
        assert found.returncode == 1
        assert json.loads(found.stdout)["mismatches"] == []
        assert len(json.loads(found.stdout)["totals"]) == 1
