"""An order that is watched in a browser: by events that are pushed, and without them by asking again."""

from __future__ import annotations

from itertools import count

import pytest
from playwright.sync_api import Page, expect

from collidium.testing.browser import Watch, overflow

from .conftest import SignIn

#: A server of its own, whose jobs can be watched.
WEB_ENVIRONMENT = {"PLATFORM_MOCK_SECONDS": "4"}

_seeds = count(100)


@pytest.mark.parametrize("pushed", [True, False])
def test_progress_is_shown_on_a_phone(page: Page, sign_in: SignIn, watch: Watch, pushed: bool) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    sign_in(page, f"watcher{pushed}")
    streams: list[str] = []
    page.on("request", lambda request: streams.append(request.url) if "/progress" in request.url else None)
    if not pushed:
        watch.allow("Failed to load resource")
        page.route("**/progress", lambda route: route.abort())
    page.goto(f"/simulate?channel=single_muon&events=10&pileup=0&seed={next(_seeds)}#order")
    page.get_by_role("button", name="Order").click()
    bar = page.get_by_role("progressbar", name="Progress of the stage")
    expect(bar).to_be_visible()
    expect(page.locator("[data-progress]")).to_contain_text("Stage 1 of 1")
    expect(page.locator("[data-progress]")).to_contain_text("left")
    first = bar.evaluate("it => it.value")
    page.wait_for_function("first => document.querySelector('progress')?.value > first", arg=first)
    assert overflow(page) == 0
    expect(page.locator("dl.facts").first).to_contain_text("completed")
    expect(bar).to_be_hidden()
    assert (len(streams) == 1) == pushed, streams
