"""collidium admin, as it is typed: what operators ask and do from scripts."""

from __future__ import annotations

import re
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import closing

import pytest
from tests.core.cli.conftest import Caller
from tests.waiting import eventually

from collidium.testing.server import ServerProcess

MUONS = ("--remote", "--channel", "single_muon", "--events", "10", "--pileup", "0")


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Caller]:
    env = {"PLATFORM_MOCK_SECONDS": "0", "PLATFORM_MOCK_OUTCOME": "failed"}
    with ServerProcess(tmp_path_factory.mktemp("server"), env=env) as server:
        running = Caller(server, "mallory")
        assert running("me").returncode == 0
        yield running


def test_a_freeze_refuses_orders_until_it_is_ended(operator: Caller) -> None:
    assert operator.data("admin", "freeze", "--note", "a drill") == {"submissions_frozen": True}
    refused = operator("simulate", *MUONS)
    assert (refused.returncode, "not accepted" in refused.stderr) == (3, True)
    thawed = operator("admin", "unfreeze", "--yes")
    assert thawed.stdout == "Not frozen: simulation requests are accepted.\n"
    assert operator("simulate", *MUONS, "--seed", "1").returncode == 0
    audited = operator.data("admin", "audit", "--limit", "2")
    assert [(logged["action"], logged["details"]) for logged in audited] == [
        ("unfreeze", {}),
        ("freeze", {"note": "a drill"}),
    ]
    shown = operator("admin", "audit", "--limit", "1")
    assert "unfreeze" in shown.stdout
    assert "There are more than 1." in shown.stderr


def test_credits_are_granted_and_taken(operator: Caller) -> None:
    before = operator.data("me")["credits"]
    given = operator.data("admin", "grant", "mallory", "2.5", "--note", "for a talk")
    assert given["new_balance"] == before + 2.5
    taken = operator("admin", "grant", "mallory", "-2.5", "--note", "twice")
    assert taken.stdout == f"mallory has {before:g} credits.\n"
    for amount, code in (("NaN", 2), ("much", 2), ("1e400", 3), ("-1e6", 3), ("0.0001", 3), ("1e30", 3)):
        assert operator("admin", "grant", "mallory", amount, "--note", "x").returncode == code, amount
    assert operator("admin", "grant", "unknown", "-1", "--note", "x").returncode == 3
    assert operator("admin", "grant", "mallory", "1").returncode == 2
    assert operator.data("me")["credits"] == before


def test_a_ban_refuses_the_account_until_it_is_ended(operator: Caller) -> None:
    assert operator("admin", "ban", "MALLORY", "--note", "a loop").stdout == "mallory is banned.\n"
    assert operator("me").returncode == 3
    assert operator.data("admin", "audit", "--limit", "1")[0]["details"] == {"note": "a loop"}
    assert operator.data("admin", "unban", "mallory") == {"hub_username": "mallory", "banned": False}
    assert operator("me").returncode == 0
    assert operator("admin", "unban", "unknown").returncode == 3


def test_a_grant_in_advance_is_there_at_the_first_sign_in(operator: Caller) -> None:
    early = operator("admin", "grant", "early", "2.5", "--note", "for the course")
    assert (early.returncode, early.stdout) == (0, "early has 2.5 credits.\n")
    assert "early has not signed in yet" in early.stderr
    assert operator("admin", "grant", "a/b", "1", "--note", "x").returncode == 3
    assert operator.data("admin", "grant", "EARLY", "1", "--note", "more")["new_balance"] == 3.5


def test_an_unban_says_whether_there_was_a_ban(operator: Caller) -> None:
    done = operator("admin", "unban", "mallory")
    assert (done.returncode, done.stdout) == (0, "mallory was not banned: it may call as before.\n")
    operator.data("admin", "ban", "mallory")
    assert operator("admin", "unban", "mallory").stdout == "mallory is no longer banned.\n"


@pytest.mark.parametrize("options", [(), ("--apply",)])
def test_nothing_to_refund_is_said(operator: Caller, options: tuple[str, ...]) -> None:
    window = ("--from", "2024-01-01T00:00", "--to", "2024-01-02T00:00")
    done = operator("admin", "refund", *window, *options)
    assert (done.returncode, done.stdout.startswith("Nothing to refund")) == (0, True)


@pytest.mark.parametrize("date", ["2027-06-30", "20270630T12", "2027-06-30 12:00:05", "2027-W26-3"])
def test_advice_about_a_date_is_accepted(operator: Caller, date: str) -> None:
    def said(text: str) -> str:
        done = operator("challenge", "edit", "none-1", "--closes", text)
        return " ".join(done.stderr.split())

    advice = re.findall(r"[^ ,]+(?:Z|\+02:00)(?=\W|$)", said(date).partition("write")[2])
    assert len(advice) == 2
    assert all("no challenge 'none-1'" in said(text) for text in advice)


def test_on_a_terminal_it_asks_first(operator: Caller) -> None:
    assert operator.on_a_terminal("n", "admin", "ban", "mallory") == (130, "")
    assert operator.on_a_terminal("n", "admin", "freeze") == (130, "")
    assert operator("me").returncode == 0
    assert operator.on_a_terminal("y", "admin", "ban", "mallory") == (0, "mallory is banned.\n")
    assert operator.on_a_terminal("n", "admin", "ban", "mallory", "--yes") == (0, "mallory is banned.\n")
    assert operator("admin", "unban", "mallory").returncode == 0


def test_refunds_are_shown_then_applied(operator: Caller) -> None:
    window = ("--from", "2026-01-01T00:00", "--to", "2026-01-02T00:00")
    spoilt = fail_by_the_caused_by_owner(operator, "2026-01-01 12:00:00+00:00")
    seen = operator.data("admin", "refund", *window)
    assert (seen["applied"], [refund["request_id"] for refund in seen["requests"]]) == (False, [spoilt])
    assert operator.on_a_terminal("n", "admin", "refund", *window, "--apply")[0] == 130
    shown = operator("admin", "refund", *window)
    assert spoilt in shown.stdout
    assert "add --apply" in shown.stderr
    before = operator.data("me")["credits"]
    paid = operator("admin", "refund", *window, "--apply", "--note", "the hub was down")
    assert paid.stdout.endswith(f"Refunded {seen['total']:g} credits for 1 requests.\n")
    assert operator.data("me")["credits"] == pytest.approx(before + seen["total"])
    assert operator.data("admin", "refund", *window, "--apply")["requests"] == []
    assert operator.data("admin", "audit", "--limit", "1")[0]["target"] == spoilt


@pytest.mark.parametrize(
    ("window", "code"),
    [
        (("--from", "soon"), 2),
        (("--from", "2026-13-01"), 2),
        ((), 2),
        (("--from", "2026-01-02T00:00Z", "--to", "2026-01-01T00:00Z"), 3),
        (("--from", "0001-01-01T00:00Z"), 3),
    ],
)
def test_a_time_that_is_none_is_refused(operator: Caller, window: tuple[str, ...], code: int) -> None:
    done = operator("admin", "refund", *window)
    assert (done.returncode, done.stdout) == (code, "")


def test_the_token_is_asked_for_by_name(operator: Caller) -> None:
    wrong = operator("admin", "audit", ADMIN_TOKEN="wrong")
    assert (wrong.returncode, "X-Admin-Token" in wrong.stderr) == (3, True)
    assert operator("admin", "audit", PLATFORM_BACKEND="http://127.0.0.1:9").returncode == 4


def fail_by_the_caused_by_owner(operator: Caller, finished_at: str) -> str:
    """A request of mallory's that failed then, of which nothing was given back; its id."""
    ordered = operator.data("simulate", *MUONS, "--seed", "7")["request_id"]
    eventually(lambda: operator.data("status", ordered)["state"] == "failed")
    request_id = uuid.uuid4().hex
    with closing(sqlite3.connect(operator.server.data_dir / "collidium.sqlite3")) as db, db:
        names = [
            str(row[1]) for row in db.execute("PRAGMA table_info(simulation_requests)") if row[1] != "id"
        ]
        changed = {
            "request_id": ":request_id",
            "finished_at": ":finished_at",
            "credits_refunded": "'0.000'",
            "handle": "NULL",
        }
        values = ", ".join(changed.get(name, name) for name in names)
        db.execute(
            f"INSERT INTO simulation_requests ({', '.join(names)}) "
            f"SELECT {values} FROM simulation_requests WHERE request_id = :ordered",
            {"request_id": request_id, "finished_at": finished_at, "ordered": ordered},
        )
    return request_id
