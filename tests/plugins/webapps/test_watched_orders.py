"""Progress of an order in a browser, by server-sent events and by polling."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from collidium.testing.browser import Watch, overflow

from .conftest import SignIn

#: A server of its own, whose jobs can be watched.
WEB_ENVIRONMENT = {"PLATFORM_MOCK_SECONDS": "8"}

#: More than a twentieth. Compared outside the page, whose security policy refuses evaluated code.
MOVING = re.compile(r"0\.(0[5-9]|[1-9])|1")


def test_progress_is_shown_on_a_phone(page: Page, sign_in: SignIn, watch: Watch) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, "watcher")
    streams: list[str] = []
    page.on("request", lambda request: streams.append(request.url) if "/progress" in request.url else None)
    page.goto("/simulate?channel=single_muon&events=10&pileup=0&seed=100#order")
    page.get_by_role("button", name="Order", exact=True).click()
    page.wait_for_url("**/simulate/requests/**")
    asking = page.context.new_page()
    watch.allow("Failed to load resource")
    asking.route("**/progress", lambda route: route.abort())
    asking.goto(page.url)
    for shown in (page, asking):
        text = shown.locator("[data-progress]")
        expect(text).to_contain_text("Stage 1 of 1")
        expect(text).to_contain_text("left")
        expect(shown.get_by_role("progressbar")).to_have_attribute("value", MOVING)
    assert overflow(page) == 0
    for shown in (page, asking):
        expect(shown.locator("dl.facts").first).to_contain_text("completed")
        expect(shown.get_by_role("progressbar")).to_be_hidden()
    assert len(streams) == 1
