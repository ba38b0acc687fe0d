"""Accessibility of all pages, in light and dark mode, on phones and laptops, in print, by keyboard."""

from __future__ import annotations

from typing import Literal

import pytest
from docs.web_pictures import Furnished, furnish
from playwright.sync_api import Page, ViewportSize
from tests.counts import LONG

from collidium.testing.browser import Watch, keyboard_gaps, layout_shift, overflow, serious_findings, sign_in
from collidium.testing.server import ServerProcess

#: A server of its own.
WEB_ENVIRONMENT: dict[str, str] = {}

Theme = Literal["light", "dark"]

PHONE: ViewportSize = {"width": 360, "height": 740}
LAPTOP: ViewportSize = {"width": 1280, "height": 800}
PAPER: ViewportSize = {"width": 794, "height": 1123}
#: Each window and each theme once, or all of their pairs.
LOOKS: list[tuple[ViewportSize, Theme]] = [(PHONE, "light"), (LAPTOP, "dark")]
if LONG:
    LOOKS += [(PHONE, "dark"), (LAPTOP, "light")]

#: Addresses for everybody; what stands in braces is the furnished server's.
PUBLIC = (
    "/",
    "/events",
    "/simulate",
    "/leaderboard/tracking",
    "/leaderboard/jets",
    "/leaderboard/tracking/results",
    "/leaderboard/submissions/{submission_id}",
    "/models",
    "/models/list-yours",
    "/models/anna/helix-net",
    "/datasets",
    "/datasets/sample/ttbar_pu40",
    "/docs",
    "/models/nothing-here",
)
#: Addresses of a signed-in user.
OWN = (
    "/",
    "/simulate",
    "/simulate/requests/{request_id}",
    "/leaderboard/tracking/submit",
    "/leaderboard/mine",
    "/leaderboard/tracking/team",
    "/leaderboard/notifications",
)


@pytest.fixture(scope="module")
def furnished(web: ServerProcess) -> Furnished:
    return furnish(web)


@pytest.fixture(params=[*PUBLIC, *(f"signed in {address}" for address in OWN)])
def shown(request: pytest.FixtureRequest, page: Page, watch: Watch, furnished: Furnished) -> Page:
    """A page that was loaded, for each address."""
    way, _, address = request.param.rpartition(" ")
    watch.allow("status of 404")
    if way:
        sign_in(page, furnished.tokens["anna"])
    path = address.format(submission_id=furnished.submission_id, request_id=furnished.request_id)
    answer = page.goto(path, wait_until="networkidle")
    assert answer is not None
    assert answer.status == (404 if "nothing" in path else 200)
    return page


def test_pages_are_accessible(shown: Page) -> None:
    assert layout_shift(shown) < 0.1
    for window, theme in LOOKS:
        shown.set_viewport_size(window)
        assert overflow(shown) == 0, window
        shown.emulate_media(color_scheme=theme, reduced_motion="reduce")
        assert serious_findings(shown) == [], (window, theme)
    assert keyboard_gaps(shown) == []
    shown.set_viewport_size(PAPER)
    shown.emulate_media(media="print", color_scheme="dark")
    assert overflow(shown) == 0
    assert shown.get_by_role("heading", level=1).is_visible()
    assert not shown.get_by_role("navigation", name="Main").is_visible()
    assert shown.evaluate("getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )
