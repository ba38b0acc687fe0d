"""Pages of leaderboards that are kept until something that they show changes."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import httpx
import pytest
from tests.plugins.webapps.boards import fill, give_truth
from tests.waiting import eventually

from collidium.testing.server import ServerProcess
from collidium_tasks.tracking_small import TrackingSmallTask

from .visiting import Visitor

METRICS_TOKEN = "scrape"
#: A server of its own, whose calls are counted.
WEB_ENVIRONMENT = {"PLATFORM_METRICS_TOKEN": METRICS_TOKEN}
NAME = TrackingSmallTask.card.name
BOARD = f"/leaderboard/{NAME}"
HISTORY = re.compile(
    r'collidium_http_requests_total\{method="GET",route="/v1/leaderboard/<task>/history",status="200"\} (\S+)'
)
CALLS = re.compile(r'collidium_http_requests_total\{[^}]*route="/v1/[^}]*\} (\S+)')


@pytest.fixture(scope="module")
def filled(web: ServerProcess) -> ServerProcess:
    give_truth(web, NAME)
    fill(web, TrackingSmallTask(), 20)
    return web


@pytest.fixture
def browser(filled: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=filled.base_url, trust_env=False, timeout=60) as client:
        wait_for_intervals(client)
        yield client


def wait_for_intervals(client: httpx.Client) -> None:
    """Until ranks have intervals, a page is made without them, and made again when they are there."""
    eventually(lambda: "without" not in client.get(f"/v1{BOARD}").headers["ETag"])


def change(server: ServerProcess, client: httpx.Client, name: str) -> None:
    """Let the submissions be of another account."""
    with closing(sqlite3.connect(server.data_dir / "collidium.sqlite3", timeout=30)) as db, db:
        db.execute("UPDATE submissions SET hub_username = ?", [name])
        db.execute("UPDATE challenges SET revision = revision + 1 WHERE name = ?", [NAME])
    wait_for_intervals(client)


def calls(client: httpx.Client) -> float:
    """How often the API was called, by the pages or else."""
    text = client.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}).text
    return sum(map(float, CALLS.findall(text)))


def makings(client: httpx.Client) -> float:
    """How often a page with plots was made: each asks for the history of each metric."""
    text = client.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"}).text
    found = HISTORY.search(text)
    return float(found[1]) if found else 0


def page(client: httpx.Client, path: str, **headers: str) -> str:
    response = client.get(path, headers=headers)
    assert response.status_code == 200, response.text
    return response.text


def test_page_is_made_once_while_its_leaderboard_stays(filled: ServerProcess, browser: httpx.Client) -> None:
    first = page(browser, BOARD)
    made = makings(browser)
    assert made
    # Ten minutes after it was made it is made again, as its plots end later.
    assert page(browser, BOARD) == first or makings(browser) > made
    assert makings(browser) in {made, 2 * made}
    change(filled, browser, "once")
    changed = page(browser, BOARD)
    assert makings(browser) > made
    assert changed != first


def test_kept_page_calls_nothing_for_a_second(filled: ServerProcess, browser: httpx.Client) -> None:
    """While its leaderboard does not change; once a second all that it shows is compared."""
    change(filled, browser, "thrice")
    page(browser, BOARD)
    counts: list[float] = []

    def visit() -> float:
        before = calls(browser)
        page(browser, BOARD)
        counts.append(calls(browser) - before)
        return counts[-1]

    eventually(lambda: visit() == 0)
    eventually(lambda: visit() == 4)
    # Ten minutes after it was made it is made again, as its plots end later.
    assert sum(count not in {0, 4} for count in counts) <= 1
    change(filled, browser, "again")
    assert visit() > 4


def test_results_are_made_again_after_a_change(filled: ServerProcess, browser: httpx.Client) -> None:
    first = page(browser, f"{BOARD}/results")
    assert page(browser, f"{BOARD}/results") == first
    change(filled, browser, "twice")
    assert page(browser, f"{BOARD}/results") != first


def test_kept_page_is_of_its_address_and_host(browser: httpx.Client) -> None:
    whole = page(browser, BOARD)
    assert page(browser, f"{BOARD}?user=user-1") != whole
    assert page(browser, BOARD) == whole


def test_kept_page_is_not_shown_to_users(filled: ServerProcess, token: Callable[[str], str]) -> None:
    with Visitor(filled.base_url) as visitor:
        assert "My places" not in visitor.get(BOARD).text
        assert visitor.sign_in(token("dora")).status_code == 303
        assert "My places" in visitor.get(BOARD).text
    with Visitor(filled.base_url) as other:
        assert "My places" not in other.get(BOARD).text


def test_page_of_users_is_of_kept_parts(filled: ServerProcess, token: Callable[[str], str]) -> None:
    """Their own places are marked; the plots and the rows of others are made once for all."""
    with Visitor(filled.base_url) as first, Visitor(filled.base_url) as second:
        wait_for_intervals(first)
        assert first.sign_in(token("erna")).status_code == 303
        assert second.sign_in(token("otto")).status_code == 303
        change(filled, first, "erna")
        made = makings(first)
        own = page(first, BOARD)
        assert makings(first) > made
        made = makings(first)
        foreign = page(second, BOARD)
        # Ten minutes after they were made they are made again, as plots end later.
        assert makings(first) in {made, 2 * made}
        assert own.count('class="mine"') == 20
        assert 'class="mine"' not in foreign
        assert "erna</summary>" not in foreign.replace("</span>", "")


def test_unknown_board_is_not_found(browser: httpx.Client) -> None:
    assert browser.get("/leaderboard/nothing").status_code == 404
    assert browser.get(f"{BOARD}?cursor=x").status_code == 422
