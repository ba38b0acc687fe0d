"""The order form with its price, and pages of requests."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from html import unescape
from itertools import count
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from playwright.sync_api import Page, expect
from tests.waiting import eventually

from collidium.client import NO_EVENTS
from collidium.testing.browser import Watch, overflow
from collidium.testing.server import ServerProcess

from .conftest import SignIn
from .visiting import Visitor, field

_serial = count(1)

SMALL = {"channel": "single_muon", "events": "10", "pileup": "0"}


WEB_ENVIRONMENT = {
    "PLATFORM_MOCK_SECONDS": "0.5",
    "PLATFORM_BURST_REQUESTS": "6",
    "PLATFORM_BURST_SECONDS": "3600",
}


@pytest.fixture
def anonymous(web: ServerProcess) -> Iterator[Visitor]:
    with Visitor(web.base_url) as visitor:
        yield visitor


@pytest.fixture
def name() -> str:
    """An account that was not used before."""
    return f"orders{next(_serial)}"


@pytest.fixture
def anna(web: ServerProcess, token: Callable[[str], str], name: str) -> Iterator[Visitor]:
    with Visitor(web.base_url) as visitor:
        visitor.sign_in(token(name))
        yield visitor


@pytest.fixture
def operator(web: ServerProcess) -> Iterator[httpx.Client]:
    headers = {"X-Admin-Token": web.admin_token}
    with httpx.Client(base_url=web.base_url, headers=headers, trust_env=False) as client:
        yield client


def key_of(page: str) -> str:
    return field(page, "key")


def order(visitor: Visitor, **fields: str) -> httpx.Response:
    """Send the form as it stands on its page, with what is typed into it."""
    page = visitor.get("/simulate").text
    return visitor.fill_in(
        "/simulate", **{"key": key_of(page), "seed": str(next(_serial)), **SMALL, **fields}
    )


def request_of(answer: httpx.Response) -> str:
    assert answer.status_code == 303, answer.text
    return urlsplit(answer.headers["Location"]).path.rpartition("/")[2]


def ended(visitor: Visitor, request_id: str) -> str:
    """The page of a request, once it has ended."""
    seen: list[str] = []

    def look() -> bool:
        seen.append(visitor.get(f"/simulate/requests/{request_id}").text)
        return "data-ended" in seen[-1]

    eventually(look)
    return seen[-1]


# -- the form -----------------------------------------------------------------------------------------


def test_anonymous_visitors_see_prices_and_are_led_to_sign_in(anonymous: Visitor) -> None:
    page = anonymous.get("/simulate")
    assert page.status_code == 200
    for part in ("ttbar-quick", "0.333 credits", "Sign in to order", "How it works", "1 to 100,000"):
        assert part in page.text
    assert "Your requests" not in page.text
    assert anonymous.post("/simulate", data=SMALL).status_code == 401
    for address in ("/simulate/latest", "/simulate/requests", f"/simulate/requests/{'0' * 32}"):
        assert anonymous.get(address).status_code == 401


def test_the_form_names_a_mock_before_an_order(anonymous: Visitor) -> None:
    """A page that takes credits promises no dataset where none is made."""
    text = anonymous.get("/simulate").text
    assert NO_EVENTS.capitalize() in text
    assert "dataset of yours" not in text
    assert "events are in a dataset" not in text


def test_the_price_is_shown_without_scripts(anonymous: Visitor) -> None:
    shown = anonymous.get("/simulate", params={"channel": "ttbar", "events": "100", "pileup": "40"}).text
    assert re.search(r"<output[^>]*>4\.583 credits", shown)
    named = anonymous.get("/simulate?preset=ttbar-hl-lhc").text
    assert 'name="pileup" inputmode="numeric" required step="1" min="0" max="200" value="200"' in named


@pytest.mark.parametrize(
    "hostile", ["", "ten", "1e3", "99999999999999999999", "\uff11\uff10", "-1", "0", "%00", "<b>", "9" * 5000]
)
def test_invalid_orders_are_reported_at_their_field(anonymous: Visitor, hostile: str) -> None:
    page = anonymous.get("/simulate", params={**SMALL, "events": hostile})
    assert page.status_code == 200
    assert re.search(r'data-fault="events">a (whole )?number', page.text)
    assert "<b>" not in page.text


def test_an_order_is_charged_followed_and_listed(anna: Visitor) -> None:
    seed = str(next(_serial))
    answer = order(anna, seed=seed)
    request_id = request_of(answer)
    assert parse_qs(urlsplit(answer.headers["Location"]).query) == {"ordered": ["now"]}
    assert f"0.014 credits charged ({NO_EVENTS})" in anna.get(answer.headers["Location"]).text
    page = ended(anna, request_id)
    for part in (
        "completed",
        "0.014 credits charged",
        "10 events of single_muon",
        f"({NO_EVENTS})",
        "Running",
    ):
        assert part in page
    assert "Cancel this request" not in page
    assert "9.986 credits" in anna.get("/simulate").text
    for address in (
        "/simulate",
        "/simulate/requests",
        "/simulate/requests?state=completed",
        "/simulate/latest",
    ):
        assert request_id in anna.get(address).text
    assert request_id not in anna.get("/simulate/requests?state=failed").text
    again = order(anna, seed=seed)
    assert request_of(again) == request_id
    assert "they cost nothing" in anna.get(again.headers["Location"]).text


def test_a_form_sent_twice_orders_once(anna: Visitor) -> None:
    page = anna.get("/simulate").text
    form = {"key": key_of(page), "seed": str(next(_serial)), **SMALL}
    first, again = anna.fill_in("/simulate", **form), anna.fill_in("/simulate", **form)
    assert request_of(first) == request_of(again)
    other = anna.fill_in("/simulate", **form | {"events": "11"})
    assert other.status_code == 409
    assert "Nothing was ordered" in other.text
    assert key_of(other.text) != form["key"]
    assert len(anna.get("/v1/requests").json()) == 1


def test_a_rejected_form_keeps_typed_values(anna: Visitor) -> None:
    wrong = order(anna, channel="<i>nothing</i>", events="0", pileup="1000", seed="-1")
    assert wrong.status_code == 422
    assert [
        name for name in ("channel", "events", "pileup", "seed") if f'data-fault="{name}"><' in wrong.text
    ] == []
    assert "<i>nothing" not in wrong.text
    assert "&lt;i&gt;nothing" in wrong.text
    poor = order(anna, channel="ttbar", events="1000")
    assert poor.status_code == 402
    assert "Nothing was ordered" in poor.text
    assert 'value="1000"' in poor.text
    assert re.search('data-when="dear">', poor.text)
    assert anna.get("/v1/me").json()["credits"] == 10


def test_a_variation_is_ordered_as_by_the_command(anna: Visitor) -> None:
    assert "smear</code>" in anna.get("/simulate").text
    page = anna.get(f"/simulate/requests/{request_of(order(anna, vary=' smear=1.20,field=0.99'))}").text
    assert "varied: field=0.99,smear=1.2<" in page
    assert "vary=field%3D0.99%2Csmear%3D1.2#order" in page
    for vary in ("field=9", "colour=1", "field=1.1,field=1.2", "smear=1.1" + ",smear=1.1" * 30):
        wrong = order(anna, vary=vary)
        refusal = anna.get("/v1/estimate", params={**SMALL, "vary": vary}).json()["errors"]
        shown = re.search(r'data-fault="vary">(.*?)<', wrong.text)
        assert (wrong.status_code, shown and unescape(shown[1])) == (422, refusal[-1]["detail"])
    assert len(anna.get("/v1/requests").json()) == 1


def test_too_many_orders_are_reported_with_the_time_to_come_back(anna: Visitor) -> None:
    for _ in range(6):
        assert order(anna).status_code == 303
    answer = order(anna)
    assert answer.status_code == 429
    assert int(answer.headers["Retry-After"]) > 60
    assert "Try again in" in answer.text


def test_a_freeze_and_a_ban_are_shown_before_an_order(
    anna: Visitor, operator: httpx.Client, name: str
) -> None:
    operator.post("/admin/freeze?frozen=true").raise_for_status()
    try:
        assert "Orders are frozen" in anna.get("/simulate").text
        answer = order(anna)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "600")
        assert "Try again in 10 minutes" in answer.text
    finally:
        operator.post("/admin/freeze?frozen=false").raise_for_status()
    assert "Orders are frozen" not in anna.get("/simulate").text
    operator.post("/admin/ban", json={"hub_username": name, "banned": True}).raise_for_status()
    page = anna.get("/simulate")
    assert (page.status_code, "Your account is banned" in page.text) == (200, True)
    assert "ttbar-quick" in page.text
    assert ">Order</button>" not in page.text


# -- requests -----------------------------------------------------------------------------------------


def test_unchanged_fragments_are_not_sent_again(anna: Visitor) -> None:
    request_id = request_of(order(anna))
    ended(anna, request_id)
    for address in ("/simulate/latest", f"/simulate/requests/{request_id}/live"):
        first = anna.get(address)
        assert "<html" not in first.text
        again = anna.get(address, headers={"If-None-Match": first.headers["ETag"]})
        assert (again.status_code, again.text) == (304, "")


def test_output_leads_to_its_first_event(anna: Visitor, web: ServerProcess, name: str) -> None:
    public, private, hostile = (request_of(order(anna, **more)) for more in ({}, {"private": "on"}, {}))
    for request_id, repo in ((public, "published"), (private, "kept"), (hostile, 'x"><b>x</b>')):
        ended(anna, request_id)
        publish(web, request_id, f"{web.base_url}/hub/datasets/{name}/{repo}")
    shown = anna.get(f"/simulate/requests/{public}").text
    first = f"/events?repo={name}%2Fpublished&amp;config=single_muon_pu0&amp;event=0"
    assert f'href="{first}"' in shown
    assert f"collidium datasets download {name}/published" in shown
    assert f'href="{web.base_url}/hub/datasets/{name}/published"' in shown
    assert first in anna.get("/simulate").text
    kept = anna.get(f"/simulate/requests/{private}").text
    assert f"{name}/kept" in kept
    assert "/hub/datasets" not in kept
    assert "/events?repo" not in kept
    assert "<b>x" not in anna.get(f"/simulate/requests/{hostile}").text


def publish(web: ServerProcess, request_id: str, address: str) -> None:
    """Have a request that ended look as one that a runner which is no mock had published."""
    change = "UPDATE simulation_requests SET is_mock = 0, output_hub_repo = ? WHERE request_id = ?"
    with closing(sqlite3.connect(web.data_dir / "collidium.sqlite3", timeout=30)) as database, database:
        database.execute(change, (address, request_id))


def test_ended_and_foreign_requests_cannot_be_cancelled(
    anna: Visitor, web: ServerProcess, token: Callable[[str], str]
) -> None:
    request_id = request_of(order(anna))
    ended(anna, request_id)
    answer = anna.fill_in(f"/simulate/requests/{request_id}/cancel")
    assert answer.status_code == 409
    assert "It was not cancelled" in answer.text
    with Visitor(web.base_url) as other:
        other.sign_in(token("looks-on"))
        for address in (
            f"/simulate/requests/{request_id}",
            "/simulate/requests/x",
            "/simulate/requests/%3Cb%3E/live",
            "/simulate/requests/%2e%2e",
        ):
            assert other.get(address).status_code == 404
        assert other.fill_in(f"/simulate/requests/{request_id}/cancel").status_code == 404


@pytest.mark.parametrize("query", ["state=nothing", "cursor=x", "cursor=%00"])
def test_invalid_queries_of_the_list_are_reported(anna: Visitor, query: str) -> None:
    answer = anna.get(f"/simulate/requests?{query}")
    assert answer.status_code in {404, 422}
    assert "<h1>" in answer.text


def test_an_empty_list_says_so(anna: Visitor) -> None:
    assert "You have ordered nothing yet" in anna.get("/simulate/requests").text
    assert "No request of yours is failed" in anna.get("/simulate/requests?state=failed").text


# -- in a browser -------------------------------------------------------------------------------------


def test_from_the_price_to_the_end_of_a_request(page: Page, sign_in: SignIn, watch: Watch) -> None:
    sign_in(page, "orders-in-a-browser")
    page.goto("/simulate")
    page.get_by_role("link", name="zmumu-quick").click()
    price = page.locator("#price")
    expect(price).to_have_text("0.083 credits")
    page.get_by_label("Events", exact=True).first.fill("1000")
    expect(price).to_have_text("8.333 credits")
    expect(page.get_by_text("1.667 credits would be left")).to_be_visible()
    page.get_by_role("slider", name="Pileup").press("End")
    expect(page.locator("#pileup")).to_have_value("200")
    expect(page.get_by_text("That is less than the price")).to_be_visible()
    page.locator("#events").fill("0")
    expect(page.locator("[data-fault=events]")).not_to_be_empty()
    expect(page.get_by_text("That is less than the price")).not_to_be_visible()
    page.locator("#events").fill("20")
    expect(price).to_have_text("0.833 credits")
    page.get_by_text("Seed, systematic variation and privacy").click()
    watch.allow("status of 422")
    page.get_by_label("Systematic variation").fill("field=9")
    expect(page.locator("[data-fault=vary]")).to_contain_text("0.5 to 1.5")
    page.get_by_label("Systematic variation").fill("field=0.99")
    expect(price).to_have_text("0.833 credits")
    page.get_by_role("button", name="Order", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("20 events of zmumu")
    expect(page.get_by_text("varied: field=0.99")).to_be_visible()
    expect(page.locator(".facts .badge")).to_have_text("completed")
    expect(page.locator(".timeline li")).to_have_count(3)


def test_a_request_that_is_done_fits_a_phone(
    page: Page, sign_in: SignIn, anna: Visitor, web: ServerProcess, name: str
) -> None:
    request_id = request_of(order(anna))
    ended(anna, request_id)
    publish(web, request_id, f"{web.base_url}/hub/datasets/{name}/{'long-name-' * 8}")
    sign_in(page, name)
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"/simulate/requests/{request_id}")
    expect(page.get_by_text("collidium datasets download")).to_be_visible()
    assert overflow(page) == 0


def test_cancelling_asks_for_confirmation(page: Page, sign_in: SignIn, watch: Watch) -> None:
    sign_in(page, "cancels-in-a-browser")
    page.goto(f"/simulate?channel=ttbar&events=5&pileup=0&seed={next(_serial)}")
    page.get_by_role("button", name="Order", exact=True).click()
    page.get_by_text("Cancel this request").click()
    watch.allow("status of 409")  # it may have ended meanwhile
    page.get_by_role("button", name="Yes, cancel it").click()
    expect(page.locator(".facts .badge")).to_have_text(re.compile("cancelled|completed"))


def test_failed_updates_are_reported(page: Page, sign_in: SignIn, watch: Watch) -> None:
    sign_in(page, "follows-in-a-browser")
    page.goto(f"/simulate?channel=ttbar&events=5&pileup=0&seed={next(_serial)}")
    watch.allow("ERR_FAILED|status of 401")
    page.route("**/live", lambda route: route.abort())
    page.get_by_role("button", name="Order", exact=True).click()
    expect(page.locator("[data-live-trouble]")).to_contain_text("does not answer")
    page.route("**/live", lambda route: route.fulfill(status=401))
    expect(page.get_by_role("link", name="Sign in again")).to_be_visible()
