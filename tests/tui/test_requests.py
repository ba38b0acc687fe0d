"""The screens Requests and one request: pages, filters, timeline, cancelling; hostile texts stay texts."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.tui import seeding
from tests.tui.conftest import ADMIN_TOKEN
from tests.tui.consoles import answers, console_of, holds, show, shows, signed_in, text
from textual.events import Paste
from textual.pilot import Pilot
from textual.widgets import Input, Select

from collidium.client import Client, Page
from collidium.order import Order
from collidium.simulations.models import order_columns
from collidium.testing.server import ServerProcess
from collidium_tui.screens.requests import Listed, RequestFilter, RequestsScreen
from collidium_tui.widgets.table import PAGE, Table

HOSTILE = "[red]eve[/]"
WIDE = "日本語" * 20
BRACKETS = "[link=x]" + "q" * 50
NOON = datetime.now(UTC).replace(hour=12, minute=0, second=0, microsecond=0)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with two pages and a bit of requests that ended; what is ordered of it runs for ever."""
    env = {"ADMIN_TOKEN": ADMIN_TOKEN, "PLATFORM_MOCK_SECONDS": "100000"}
    with ServerProcess(tmp_path_factory.mktemp("busy"), env=env) as server:
        rows = [
            seeding.ended(
                number, NOON - timedelta(days=2, minutes=number), channel=("ttbar", "zee")[number % 2]
            )
            for number in range(1, 2 * PAGE + 11)
        ]
        rows[3].state, rows[3].hub_username = "failed", HOSTILE
        rows[3].reason = "the runner said \x1b[31m[bold]no[/bold]\x07"
        rows[4].update_from_dict({"hub_username": WIDE, **order_columns(Order(BRACKETS, 100, 0))})
        seeding.seed(server, seeding.requests(rows))
        yield server


@pytest.fixture(scope="module")
def carol(busy: ServerProcess) -> Iterator[Client]:
    """An account that orders."""
    with Client(busy.base_url, busy.add_user("carol")) as client:
        yield client


def table(pilot: Pilot[None]) -> Table[Any]:
    return pilot.app.screen.query(Table).first()


def shown_ids(pilot: Pilot[None]) -> list[str]:
    """The ids of the requests that are listed."""
    return [request.request_id for request in table(pilot).records]


async def type_in(pilot: Pilot[None], field: str, value: str) -> None:
    pilot.app.screen.query_one(field, Input).value = value
    pilot.app.screen.query_one(field).focus()
    await pilot.press("enter")


# -- the list -----------------------------------------------------------------------------------------


async def test_pages_are_turned_there_and_back(busy: ServerProcess) -> None:
    async with signed_in(busy, "Requests") as pilot:
        first = shown_ids(pilot)
        assert len(first) == PAGE
        table(pilot).action_turn_page(1)
        table(pilot).action_turn_page(1)  # too early: it is not known yet whether there is a third page
        await holds(pilot, lambda: shown_ids(pilot) != first)
        await shows(pilot, "page 2 of requests")
        second = shown_ids(pilot)
        await pilot.press("n")
        await shows(pilot, "page 3 of requests (p: previous)")
        assert not {*first, *second} & {*shown_ids(pilot)}
        await pilot.press("p")
        await holds(pilot, lambda: shown_ids(pilot) == second)
        await pilot.press("p")
        await holds(pilot, lambda: shown_ids(pilot) == first)


async def test_requests_are_picked_by_state_account_and_channel(busy: ServerProcess) -> None:
    async with signed_in(busy, "Requests") as pilot:
        pilot.app.screen.query_one(Select).value = "failed"
        await holds(pilot, lambda: len(shown_ids(pilot)) == 1)
        await shows(pilot, HOSTILE)
        await pilot.press("a")
        await holds(pilot, lambda: len(shown_ids(pilot)) == PAGE)
        await pilot.press("slash", *"alice", "enter")
        await holds(pilot, lambda: {r.hub_username for r in table(pilot).records} == {"alice"})
        await type_in(pilot, "#channel", "zee")
        await holds(pilot, lambda: {r.channel for r in table(pilot).records} == {"zee"})
        await pilot.press("n")
        await shows(pilot, "page 2")
        assert {r.channel for r in table(pilot).records} == {"zee"}
        await type_in(pilot, "#channel", "higgs")
        await shows(pilot, "no requests by alice, of higgs", "0 requests")


async def test_an_account_that_is_not_there_is_shown(busy: ServerProcess) -> None:
    async with signed_in(busy, "Requests") as pilot:
        await pilot.press("slash", *"unknown", "enter")
        await shows(pilot, "there is no account 'unknown'")
        assert not shown_ids(pilot)
        assert "STALE" not in text(pilot)
        assert console_of(pilot).session.status.last_error == ""


async def test_escape_leaves_the_fields_as_they_were(busy: ServerProcess) -> None:
    async with signed_in(busy, "Requests") as pilot:
        await pilot.press("slash", *"ali", "escape")
        assert pilot.app.screen.query_one("#user", Input).value == ""
        assert isinstance(pilot.app.focused, Table)


async def test_hostile_texts_in_the_fields_are_unknown_names(busy: ServerProcess) -> None:
    async with signed_in(busy, "Requests") as pilot:
        for hostile in ("[red]", "%00", "../../x", "日本語", "' OR 1=1 --"):
            await type_in(pilot, "#channel", hostile)
            await shows(pilot, "no requests of")
            await type_in(pilot, "#user", hostile)
            await shows(pilot, "there is no account")
            await pilot.press("a")
            await holds(pilot, lambda: len(shown_ids(pilot)) == PAGE)


async def test_fields_reject_long_text_and_control_characters(busy: ServerProcess) -> None:
    async with signed_in(busy, "Requests") as pilot:
        for field in ("#user", "#channel"):
            box = pilot.app.screen.query_one(field, Input)
            for pasted in ("It was the best of times. " * 40_000, "\x1b[2Jboo\x00"):
                box.focus()
                await holds(pilot, lambda box=box: box.has_focus)
                box.post_message(Paste(pasted))
                await pilot.press("enter")
                assert box.value == ""
        assert len(shown_ids(pilot)) == PAGE


async def test_other_screens_lead_here(busy: ServerProcess) -> None:
    async with signed_in(busy, "Requests") as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, RequestsScreen)
        screen.pick(RequestFilter(state="failed", channel="ttbar"))
        await holds(pilot, lambda: len(shown_ids(pilot)) == 1)
        assert screen.query_one(Select).value == "failed"


# -- one request --------------------------------------------------------------------------------------


async def test_a_request_is_shown_with_its_job_and_timeline(busy: ServerProcess) -> None:
    async with signed_in(busy, "Requests") as pilot:
        request = table(pilot).records[0]
        await pilot.press("enter")
        await shows(pilot, request.request_id, request.hub_username, "queued", "Timeline")
        await shows(pilot, f"{seeding.handle_of(request.request_id)} at runner mock")
        await pilot.press("i")
        assert pilot.app.clipboard == request.request_id
        await pilot.press("l")
        await shows(pilot, "0 output files")
        await pilot.press("escape")
        await shows(pilot, "page 1 of requests")


async def test_markup_and_control_characters_stay_text(busy: ServerProcess) -> None:
    async with signed_in(busy, "Requests", size=(160, 50)) as pilot:
        pilot.app.screen.query_one(Select).value = "failed"
        await shows(pilot, HOSTILE, "[31m[bold]no[/bold]")
        table(pilot).focus()
        await pilot.press("enter")
        await shows(pilot, f"account     {HOSTILE}", "the runner said  [31m[bold]no[/bold]")
        assert not {*text(pilot)} & {"\x1b", "\x07"}
        await pilot.press("escape")
        await pilot.press("a")
        await type_in(pilot, "#channel", BRACKETS)
        await shows(pilot, "[link=x]qqq…", "日本語日本")


async def test_cancelling_names_the_request_asks_and_reports(busy: ServerProcess, carol: Client) -> None:
    ordered = carol.simulate("ttbar", 10, 0)
    async with signed_in(busy, "Requests", size=(120, 30)) as pilot:
        await holds(pilot, lambda: shown_ids(pilot)[:1] == [ordered.request_id])
        await pilot.press("x")
        await shows(pilot, f"Cancel request {ordered.request_id}", "10 events of ttbar", "carol", "credits")
        await pilot.press("n")
        await holds(pilot, lambda: "Cancel request" not in text(pilot))
        assert not carol.request(ordered.request_id).cancel_requested
        await pilot.press("x")
        await shows(pilot, f"Cancel request {ordered.request_id}")
        await pilot.press("y")
        await shows(pilot, f"Request {ordered.request_id}")
        done = carol.wait(ordered.request_id, timeout=60)
        assert (done.state, done.credits_refunded) == ("cancelled", done.credits_charged)
        await pilot.press("r")
        await holds(pilot, lambda: table(pilot).records[0].has_ended)
        # There is nothing left to ask about.
        await pilot.press("x")
        await shows(pilot, "has been cancelled already")


async def test_a_request_is_cancelled_where_it_is_looked_at(busy: ServerProcess, carol: Client) -> None:
    ordered = carol.simulate("zee", 10, 0)
    async with signed_in(busy, "Requests", size=(120, 30)) as pilot:
        await holds(pilot, lambda: shown_ids(pilot)[:1] == [ordered.request_id])
        await pilot.press("enter")
        await shows(pilot, ordered.request_id, "next", "poll the runner")
        await pilot.press("x")
        await shows(pilot, f"Cancel request {ordered.request_id}")
        await pilot.press("y")
        carol.wait(ordered.request_id, timeout=60)
        await pilot.press("r")
        await shows(pilot, "state       cancelled", "cancel requested by an operator")


async def test_what_cannot_be_cancelled_any_more_is_shown(busy: ServerProcess, carol: Client) -> None:
    """The list is some seconds old: by the time of the answer the request has ended."""
    ordered = carol.simulate("jets", 10, 0)
    async with signed_in(busy, "Requests", size=(120, 30)) as pilot:
        await holds(pilot, lambda: shown_ids(pilot)[:1] == [ordered.request_id])
        await pilot.press("x")
        await shows(pilot, f"Cancel request {ordered.request_id}")
        seeding.seed(busy, seeding.fail(ordered.request_id))
        await pilot.press("y")
        await shows(pilot, "Not done", "the request has failed already")


async def test_what_is_being_cancelled_is_not_cancelled_twice(busy: ServerProcess) -> None:
    async with signed_in(busy, "Requests") as pilot:
        first = replace(table(pilot).records[0], state="running", cancel_requested=True)
        await answers(pilot, Listed(Page((first,))))
        await pilot.press("x")
        await shows(pilot, "is already being cancelled")


# -- tables -------------------------------------------------------------------------------------------


async def test_rows_are_copied_sorted_and_exported(
    busy: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with signed_in(busy, "Requests", size=(200, 30)) as pilot:
        await pilot.press("down", "c")
        assert pilot.app.clipboard == shown_ids(pilot)[1]
        await shows(pilot, f"Copied {shown_ids(pilot)[1]}")
        await pilot.press("s")
        assert "^request" in text(pilot)
        await pilot.press("S")
        assert "vrequest" in text(pilot)
        await pilot.press("e")
        await shows(pilot, f"{PAGE} requests of page 1 written to")
    (path,) = tmp_path.glob("collidium-requests-*.csv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["request"] for row in rows] == sorted((row["request"] for row in rows), reverse=True)
    assert len(rows) == PAGE


async def test_a_directory_that_cannot_be_written_to_is_shown(
    busy: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "gone"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()
    async with signed_in(busy, "Requests") as pilot:
        await pilot.press("e")
        await shows(pilot, "Not exported")


async def test_the_cursor_stays_on_its_row(busy: ServerProcess, carol: Client) -> None:
    async with signed_in(busy, "Requests") as pilot:
        await pilot.press("down", "down", "down")
        chosen = table(pilot).current
        assert chosen is not None
        ordered = carol.simulate("ggf", 10, 0)
        await pilot.press("r")
        await holds(pilot, lambda: shown_ids(pilot)[:1] == [ordered.request_id])
        now = table(pilot).current
        assert now is not None
        assert now.request_id == chosen.request_id
        await show(pilot, "Usage")
        await show(pilot, "Requests")
        assert table(pilot).cursor_row == 4
