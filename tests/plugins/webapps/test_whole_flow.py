"""What the web apps are for, in one go: sign in, order events, look at them, compete, look around, sign out.

One server that simulates on this machine, and one person with a browser.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from docs.web_pictures import Furnished, furnish, reconstruction
from PIL import Image
from playwright.sync_api import Page, expect

from collidium.testing.browser import Watch, sign_in
from collidium.testing.server import ServerProcess

#: Milliseconds that two events may take through all four stages, on a machine that does other things, too.
SIMULATION = 240_000


WEB_ENVIRONMENT = {"PLATFORM_RUN_MODE": "real", "PLATFORM_RUNNER": "local", "PLATFORM_POLL_SECONDS": "0.5"}


@pytest.fixture(scope="module")
def furnished(web: ServerProcess) -> Furnished:
    return furnish(web, order=False)


@pytest.mark.timeout(400)
def test_a_user_orders_looks_competes_and_signs_out(
    page: Page, watch: Watch, furnished: Furnished, tmp_path: Path
) -> None:
    sign_in(page, furnished.tokens["emmy"])
    order_events(page, furnished.tokens["emmy"])
    look_at_the_first(page)
    watch.allow("status of 422")
    compete(page, tmp_path)
    look_around(page)
    leave(page)


def order_events(page: Page, token: str) -> None:
    """Choose, see the price, order, let the platform publish, and watch until the events are there."""
    page.get_by_role("link", name="Simulate", exact=True).click()
    page.get_by_label("Channel").select_option("ttbar")
    page.get_by_role("spinbutton", name="Events").fill("2")
    page.get_by_role("spinbutton", name="Pileup").fill("0")
    expect(page.locator("#price")).to_contain_text("credit")
    page.get_by_role("button", name="Order").click()
    page.get_by_label("token").fill(token)
    page.get_by_role("button", name="Allow", exact=True).click()
    page.get_by_role("button", name="Order").click()
    expect(page.get_by_role("heading", name="2 events of ttbar")).to_be_visible()
    expect(page.get_by_role("link", name="See its first event")).to_be_visible(timeout=SIMULATION)
    expect(page.get_by_role("listitem").filter(has_text="Completed")).to_be_visible()


def look_at_the_first(page: Page) -> None:
    """The display draws the event that was just made, and not the same from another side."""
    page.get_by_role("link", name="See its first event").click()
    picture = page.get_by_role("group", name="Picture of the event")
    expect(page.get_by_text("Loading the event")).to_be_hidden()
    space = colours(picture.screenshot())
    page.locator("[data-view=xy]").click()
    plane = colours(picture.screenshot())
    assert len(space) > 20, "hits are drawn in many colours"
    assert space != plane


def colours(screenshot: bytes) -> dict[tuple[int, int, int], int]:
    """How often a picture has which colour."""
    counted = Image.open(BytesIO(screenshot)).convert("RGB").getcolors(1 << 24)
    return {colour: count for count, colour in counted or []}


def compete(page: Page, directory: Path) -> None:
    """A bad file first: all that is wrong with it is shown. Then a good one, which leads the board."""
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Leaderboards").click()
    page.get_by_role("link", name="Submit").first.click()
    good = reconstruction(0.99)
    bad = good.drop_columns(["track_id"]).append_column("extra", pa.array([1.5] * good.num_rows))
    pq.write_table(bad, directory / "bad.parquet")
    pq.write_table(good, directory / "good.parquet")
    page.locator("#predictions").set_input_files(directory / "bad.parquet")
    page.get_by_role("button", name="Check").click()
    for column in ("track_id", "extra"):
        expect(page.get_by_role("main")).to_contain_text(column)
    page.locator("#predictions").set_input_files(directory / "good.parquet")
    page.get_by_role("button", name="Check").click()
    page.get_by_role("button", name="Submit").click()
    page.get_by_role("link", name="See it on the leaderboard").click()
    first = page.locator("#board").get_by_role("row").nth(1)
    expect(first.get_by_role("cell").first).to_contain_text("1")
    expect(first).to_contain_text("emmy")
    first.locator("a[href^='/leaderboard/submissions/']").first.click()
    expect(page.get_by_role("main")).to_contain_text("sha256")


def look_around(page: Page) -> None:
    """The zoo lists what is on the hub by the tag."""
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Models").click()
    expect(page.get_by_role("link", name="anna/helix-net")).to_be_visible()


def leave(page: Page) -> None:
    """Signed out, a page of the user's own things asks to sign in."""
    page.locator("summary").filter(has_text="emmy").click()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("link", name="Sign in").first).to_be_visible()
