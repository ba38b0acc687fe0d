"""The pages of leaderboards and submissions, on a server with 1,200 places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from urllib.parse import urljoin

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.plugins.webapps.boards import fill, give_truth

from collidium.client import Client, Place
from collidium.presentation.quantities import written
from collidium.testing.server import ServerProcess
from collidium_plugins.webapps.leaderboard import ROWS
from collidium_tasks.tracking import TrackingTask
from collidium_tasks.tracking_small import TrackingSmallTask

#: A server of its own.
WEB_ENVIRONMENT: dict[str, str] = {}

PLACES = 1200
BOARD = "/leaderboard/tracking"


@pytest.fixture(scope="module")
def filled(web: ServerProcess) -> ServerProcess:
    """Two leaderboards; one is empty, and others have no truth."""
    for task in ("tracking", "tracking_small", "tracking_latency"):
        give_truth(web, task)
    fill(web, TrackingTask(), PLACES)
    fill(web, TrackingSmallTask(), 60)
    return web


@pytest.fixture(scope="module")
def anonymous(filled: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=filled.base_url, trust_env=False, timeout=60) as client:
        yield client


@pytest.fixture(scope="module")
def best(filled: ServerProcess) -> Place:
    """Who leads the tracking task."""
    with Client(filled.base_url) as client:
        return client.leaderboard("tracking", limit=1)[0]


def ranks(page: str) -> list[int]:
    return [int(rank.replace(",", "")) for rank in re.findall(r'data-label="Rank"><span>([\d,]+)<', page)]


def next_page(page: str) -> str | None:
    found = re.search(r'rel="next" href="([^"]+)"', page)
    return unescape(found[1]) if found else None


def words(page: str) -> str:
    """What is read, without the marks."""
    return " ".join(unescape(re.sub(r"<[^>]+>", "", page)).split())


# -- the leaderboard ------------------------------------------------------------------------------------


def test_the_first_page_is_of_a_task_that_takes_submissions(anonymous: httpx.Client) -> None:
    answer = anonymous.get("/leaderboard")
    assert answer.status_code == 303
    assert answer.headers["Location"] == BOARD


@pytest.mark.parametrize("path", ["/", BOARD])
def test_scores_have_one_format(anonymous: httpx.Client, best: Place, path: str) -> None:
    metric = TrackingTask().card.primary_metric.name
    assert written(best.scores[metric], best.uncertainties.get(metric)) in anonymous.get(path).text


def test_a_page_shows_task_places_and_plots_within_its_size(anonymous: httpx.Client, best: Place) -> None:
    answer = anonymous.get(BOARD)
    assert answer.status_code == 200
    page = answer.text
    assert len(answer.content) < 150_000
    assert ranks(page) == list(range(1, ROWS + 1))
    assert f'href="/leaderboard/submissions/{best.submission_id}"' in page
    shown = words(page)
    assert "Charged-particle tracking" in shown
    assert "higher is better: TrackML efficiency trackml_weighted_efficiency" in shown
    assert "lower is better: Fake rate fake_rate" in shown
    assert f"{best.scores['fake_rate']:.4f} ± 0.0040" in shown
    assert page.count('role="img"') == len(TrackingTask.card.metrics)
    assert "The last 50 steps lead from" in shown
    assert "style=" not in page
    assert "nan" not in re.findall(r'(?:points|cx|cy|x1|y1)="([^"]*)"', page)


def test_ranks_have_their_intervals(anonymous: httpx.Client, filled: ServerProcess) -> None:
    with Client(filled.base_url) as client:
        places = client.leaderboard("tracking", limit=ROWS).items
    unsure = [place for place in places if place.rank_low != place.rank_high]
    assert len(unsure) > 5
    page = anonymous.get(BOARD).text
    shown = re.findall(r"(≈ )?(\d+) to (\d+)</span>", page)
    assert shown == [("≈ " * bool(p.may_be_equal), str(p.rank_low), str(p.rank_high)) for p in unsure]
    assert "interval of 95" in page


def test_every_task_with_truth_is_a_tab(anonymous: httpx.Client) -> None:
    tabs = re.search(r'<nav class="tabs".*?</nav>', anonymous.get(BOARD).text, re.DOTALL)
    assert tabs
    assert 'href="/leaderboard/tracking_small"' in tabs[0]
    assert "/leaderboard/jets" not in tabs[0], "it has no truth yet"
    assert re.findall(r'href="([^"]+)" aria-current="page"', tabs[0]) == [BOARD]


def test_pages_lead_through_all_places_by_links_alone(anonymous: httpx.Client) -> None:
    found: list[int] = []
    address: str | None = BOARD
    while address:
        page = anonymous.get(address).text
        found += ranks(page)
        assert ('role="img"' in page) == (address == BOARD), "plots are on the first page alone"
        address = next_page(page)
    assert found == list(range(1, PLACES + 1))


def test_filtered_places_keep_their_ranks(anonymous: httpx.Client, filled: ServerProcess) -> None:
    with Client(filled.base_url) as client:
        places = client.leaderboard("tracking", limit=1000, user="user-3")
    page = anonymous.get(BOARD, params={"user": "user-3"}).text
    assert ranks(page) == [place.rank for place in places]
    assert 'value="user-3"' in page
    model = anonymous.get(BOARD, params={"user": "user-3", "model": "user-3/model-1"}).text
    wanted = [place.rank for place in places if place.model_repo == "user-3/model-1"]
    assert ranks(model) == wanted
    assert 0 < len(wanted) < len(places)


def test_the_pareto_front_is_drawn(anonymous: httpx.Client, filled: ServerProcess) -> None:
    page = anonymous.get("/leaderboard/tracking_small").text
    assert "Pareto front: TrackML efficiency and Parameters" in words(page)
    with Client(filled.base_url) as client:
        front = client.leaderboard("tracking_small", pareto=True, limit=1000)
    assert page.count('<g class="front">') == len(front)
    only = anonymous.get("/leaderboard/tracking_small", params={"pareto": "1"}).text
    assert ranks(only) == [place.rank for place in front]


def test_no_row_of_predictions_alone_is_called_measured(anonymous: httpx.Client) -> None:
    """The task ranks what the platform measures; these rows have no model that it has run."""
    page = anonymous.get("/leaderboard/tracking_small").text
    board = page.partition('<table class="data narrow-cards">\n<caption')[2].partition("</table>")[0]
    rows = words(board)
    assert rows.count("self-reported") >= 60
    assert "measured" not in rows


def test_a_models_page_lists_a_participant_once(anonymous: httpx.Client, filled: ServerProcess) -> None:
    with Client(filled.base_url) as client:
        places = client.leaderboard("tracking", model_repo="user-3/model-1", limit=1000).items
    assert len(places) > 2
    page = anonymous.get("/models/user-3/model-1").text
    assert page.count('href="/leaderboard/tracking?model=') == 1


def test_self_reported_submissions_are_listed_separately(
    anonymous: httpx.Client, filled: ServerProcess
) -> None:
    """Where the platform measures models; of predictions alone it measures nothing."""
    page = anonymous.get("/leaderboard/tracking_small").text
    apart = words(page.partition('<h2 id="apart">')[2].partition("</section>")[0])
    assert "Self-reported, without a rank" in apart
    with Client(filled.base_url) as client:
        newest = client.self_reported("tracking_small", limit=1)[0]
    assert newest.hub_username in apart
    assert 'id="apart"' not in anonymous.get(BOARD).text


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("/leaderboard/tracking_latency", "No submissions yet"),
        ("/leaderboard/jets", "It opens when its truth is imported"),
        (f"{BOARD}?user=unknown", "No such places"),
        (f"{BOARD}?user=%20%20&model=", "Ranking"),
    ],
)
def test_an_empty_leaderboard_has_a_reason(anonymous: httpx.Client, address: str, message: str) -> None:
    answer = anonymous.get(address)
    assert answer.status_code == 200
    assert message in words(answer.text)
    assert ('class="filters"' in answer.text) == ("?" in address), "nothing to filter on an empty leaderboard"


@pytest.mark.parametrize(
    ("address", "status", "message"),
    [
        ("/leaderboard/nothing", 404, "There is no challenge"),
        ("/leaderboard/%3Cscript%3Ealert(1)", 404, "There is no challenge '<script>alert(1)"),
        ("/leaderboard/%2E", 404, "Page not found"),
        (f"{BOARD}?cursor=nonsense", 422, "cursor"),
        (f"{BOARD}?user={'x' * 97}", 422, "hub_username"),
        (f"{BOARD}?pareto=1", 422, "does not trade two metrics"),
        ("/leaderboard/submissions/nothing", 404, "There is no submission"),
        ("/leaderboard/submissions/%2E", 404, "Page not found"),
    ],
)
def test_missing_leaderboards_and_submissions_are_reported(
    anonymous: httpx.Client, address: str, status: int, message: str
) -> None:
    answer = anonymous.get(address)
    assert answer.status_code == status
    assert message in words(answer.text)
    assert "<script>alert" not in answer.text


@pytest.mark.parametrize(
    "name", ['"><img src=x onerror=alert(1)>', "\u202egnihtemos", "{{ 7*7 }}", "' OR 1=1"]
)
def test_filters_are_escaped(anonymous: httpx.Client, name: str) -> None:
    page = anonymous.get(BOARD, params={"user": name, "model": name}).text
    assert "<img src=x" not in page
    shown = re.search(r'id="pick-user" name="user" value="([^"]*)"', page)
    assert shown
    assert unescape(shown[1]) == name


# -- a submission ---------------------------------------------------------------------------------------


def test_a_submission_shows_its_provenance(anonymous: httpx.Client, best: Place) -> None:
    answer = anonymous.get(f"/leaderboard/submissions/{best.submission_id}")
    assert answer.status_code == 200
    shown = words(answer.text)
    kept = anonymous.get(f"/v1/submissions/{best.submission_id}").json()
    for part in (kept["sha256"], kept["truth_version"], f"version {kept['scorer_version']}", "7,890 rows"):
        assert part in shown
    assert "ttbar_pu0, imported from a directory of the server" in shown
    assert "Rank 1 of the leaderboard" in shown
    assert f"echo '{kept['sha256']}  predictions.parquet' | sha256sum --check" in unescape(answer.text)
    assert "2 events, 3 to 4" in shown


@pytest.mark.parametrize("rank", [1, ROWS, ROWS + 1])
def test_a_submission_leads_back_to_its_place(
    anonymous: httpx.Client, filled: ServerProcess, rank: int
) -> None:
    with Client(filled.base_url) as client:
        place = client.leaderboard("tracking", limit=rank)[-1]
    page = anonymous.get(f"/leaderboard/submissions/{place.submission_id}").text
    back = re.search(rf'href="({BOARD}[^"]*)#(s-{place.submission_id})"', page)
    assert back
    board = anonymous.get(unescape(back[1])).text
    assert f'id="{back[2]}"' in board
    assert ("A part of the ranking" in board) == (rank > ROWS), "the whole board where it can"


def test_unverified_submissions_are_marked_on_their_page(
    anonymous: httpx.Client, filled: ServerProcess
) -> None:
    with Client(filled.base_url) as client:
        submission = client.leaderboard("tracking_small", limit=1)[0].submission_id
    assert "self-reported, not verified" in anonymous.get(f"/leaderboard/submissions/{submission}").text


def test_results_are_on_one_page_and_in_files(anonymous: httpx.Client) -> None:
    page = anonymous.get(f"{BOARD}/results").text
    found = re.findall(r'<td class="rank" data-label="Rank">([\d,]+)<', page)
    assert [int(rank.replace(",", "")) for rank in found] == list(range(1, 1001))
    shown = words(page)
    assert "more than 1,000" in shown
    assert "all events 3 to 4 of ttbar_pu0" in shown
    assert f'href="{BOARD}/results"' in anonymous.get(BOARD).text
    (address,) = re.findall(r'href="([^"]+format=csv)"', page)
    assert len(anonymous.get(urljoin(BOARD, address)).text.splitlines()) == 1 + PLACES


# -- in a browser ---------------------------------------------------------------------------------------


def test_pages_change_without_leaving_the_page(page: Page, filled: ServerProcess) -> None:
    page.goto(BOARD)
    page.evaluate("() => { window.stayed = true; }")
    page.get_by_role("link", name="Next page").click()
    expect(page.locator("td.rank").first).to_have_text(re.compile(rf"^{ROWS + 1}\b"))
    assert page.evaluate("() => window.stayed") is True
    assert "cursor=" in page.url
    expect(page.locator(".board")).to_be_focused()
    page.go_back()
    expect(page.locator("td.rank").first).to_have_text(re.compile(r"^1(≈| |$)"))
    assert page.evaluate("() => window.stayed") is True
    assert page.url == urljoin(filled.base_url, BOARD)


def test_filters_and_tabs_work_by_keyboard(page: Page, filled: ServerProcess) -> None:
    page.goto("/leaderboard/tracking_small")
    page.get_by_label("Account", exact=True).fill("user-3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="A part of the ranking")).to_be_visible()
    assert page.locator(".board tbody th").all_inner_texts() == ["user-3", "user-3"]
    page.get_by_role("link", name="Charged-particle tracking").press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Charged-particle tracking")


@pytest.mark.parametrize("width", [360, 1280, 3840])
def test_nothing_is_wider_than_the_window(page: Page, filled: ServerProcess, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for address in (BOARD, "/leaderboard/tracking_small"):
        page.goto(address)
        assert page.evaluate("() => document.documentElement.scrollWidth") <= width
        box = page.evaluate(
            "() => { const b = document.querySelector('.board'); return b.scrollWidth - b.clientWidth; }"
        )
        assert width > 1000 or box == 0, "on a telephone, every place is a card"
        tabs = page.evaluate(
            "() => { const t = document.querySelector('.tabs'); return t.scrollWidth - t.clientWidth; }"
        )
        assert width < 1000 or tabs == 0, "every task is seen"
