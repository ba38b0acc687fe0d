"""The event display in a browser, on the sample that every platform has."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Final

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.image import imread
from playwright.sync_api import BrowserContext, Page, Route, expect

from collidium.datasets import sample
from collidium.testing.browser import Watch
from collidium.testing.server import ServerProcess

#: A server of its own.
WEB_ENVIRONMENT: dict[str, str] = {}

EVENT: Final = "/events?repo=sample&config=ttbar_pu0&event=0"
#: Scored by a task here, so that its truth is of no other.
SCORED: Final = 3


@pytest.fixture(scope="module", autouse=True)
def _scored(web: ServerProcess) -> None:
    events = ("--config", sample.CONFIG, "--events", f"{SCORED}:{SCORED + 1}")
    done = web.run("truth", "import", "tracking", "--from", str(sample.DIRECTORY), *events)
    assert done.returncode == 0, done.stderr


def shown(page: Page, address: str = EVENT) -> Page:
    """The page when its event is drawn, with all sections unfolded."""
    page.goto(address)
    expect(page.locator("#summary")).to_contain_text("shown")
    expect(page.locator("#waiting")).to_be_hidden()
    folded = page.locator(".panels > details:not([open])")
    folded.evaluate_all("all => all.forEach((one) => (one.open = true))")
    return page


def pixels(page: Page) -> np.ndarray:
    """The picture, as height, width, colours."""
    return imread(io.BytesIO(page.locator("#stage").screenshot()))[:, :, :3]


def differ(one: np.ndarray, other: np.ndarray) -> float:
    """The share of pixels that are others."""
    return float(np.mean(np.any(np.abs(one - other) > 0.05, axis=2)))


def test_the_number_typed_before_the_scripts_run_is_kept(page: Page) -> None:
    held: list[Route] = []
    page.route("**/detectors/*.json*", lambda route: held.append(route))
    with page.expect_request("**/detectors/*.json*"):
        page.goto(EVENT, wait_until="commit")
    page.get_by_role("spinbutton", name="Event").fill("2")
    held[0].continue_()
    expect(page.locator("#summary")).to_contain_text("Event 0 of ttbar_pu0")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#summary")).to_contain_text("Event 2 of ttbar_pu0")


def test_each_view_and_colour_is_another_picture(page: Page) -> None:
    shown(page)
    expect(page.locator("#summary")).to_contain_text("465 of 465 hits, 13 of 13 tracks")
    pictures = {"3d": pixels(page)}
    ground = pictures["3d"][2, 2]
    assert np.mean(np.any(np.abs(pictures["3d"] - ground) > 0.05, axis=2)) > 0.02

    for view in ("xy", "rz"):
        page.locator(f"[data-view={view}]").click()
        expect(page.locator(f"[data-view={view}]")).to_have_attribute("aria-pressed", "true")
        pictures[view] = pixels(page)
    assert differ(pictures["3d"], pictures["xy"]) > 0.02
    assert differ(pictures["xy"], pictures["rz"]) > 0.02

    page.locator("#colour").select_option("pt")
    expect(page.locator("#legend")).to_contain_text("GeV (logarithmic)")
    assert differ(pixels(page), pictures["rz"]) > 0.001
    page.locator("#ground").click()
    assert differ(pixels(page), pictures["rz"]) > 0.5


def hits_of_at_least(pt: float) -> int:
    """Hits of event 0 whose particle has that much transverse momentum, GeV."""
    hits, particles = (
        pq.read_table(sample.DIRECTORY / f"{name}.parquet").slice(0, 1).to_pylist()[0]
        for name in ("tracker_hits", "particles")
    )
    fast = {one for one, of in zip(particles["particle_id"], particles["pt"], strict=True) if of >= pt}
    return sum(particle in fast for particle in hits["particle_id"])


def test_cuts_change_what_is_shown_by_keys_and_by_numbers(page: Page) -> None:
    shown(page)
    page.locator("#pt").fill("1")
    expect(page.locator("#summary")).to_contain_text(f"{hits_of_at_least(1.0)} of 465 hits")
    page.locator("#pt").fill("0")
    page.locator("#eta-slider").focus()
    page.keyboard.press("Home")
    expect(page.locator("#summary")).to_contain_text("0 of 465 hits")
    page.locator("#reset").click()
    expect(page.locator("#summary")).to_contain_text("465 of 465 hits")

    for cut in ("#pt", "#eta", "#time-low", "#time-high"):
        expect(page.locator(cut)).to_have_value("")
        expect(page.locator(cut)).to_have_attribute("placeholder", "any")
    page.locator("#time-cut").evaluate("it => it.hidden = false")  # the sample has no times
    page.locator("#time-high-slider").focus()
    page.keyboard.press("ArrowLeft")
    expect(page).to_have_url(re.compile("#time=,0.99$"))
    expect(page.locator("#time-low")).to_have_value("")
    expect(page.locator("#time-high")).to_have_value("0.99")
    page.keyboard.press("End")
    expect(page.locator("#time-high")).to_have_value("")
    expect(page).not_to_have_url(re.compile("time="))

    page.get_by_text("Parts of the tracker").click()
    page.get_by_label("pixels, barrel").uncheck()
    expect(page.locator("#summary")).not_to_contain_text("465 of 465 hits")
    page.get_by_label("Tracks", exact=False).first.uncheck()
    expect(page.locator("#summary")).not_to_contain_text("tracks")


def test_the_address_is_the_exact_view_and_going_back_goes_back(page: Page) -> None:
    shown(page)
    page.locator("[data-view=xy]").click()
    page.locator("#pt").fill("2")
    page.locator("#pt").press("Tab")
    page.locator("#stage").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("+")
    page.keyboard.press("t")
    expect(page.locator("#chosen")).to_contain_text("Track")
    address, before, summary = page.url, pixels(page), page.locator("#summary").inner_text()
    assert "view=xy" in address
    assert "pick=track:" in address

    other = page.context.new_page()
    shown(other, address)
    assert other.locator("#summary").inner_text() == summary
    assert other.locator("#chosen").inner_text() == page.locator("#chosen").inner_text()
    assert differ(pixels(other), before) < 0.002
    other.close()

    page.go_back()
    expect(page.locator("#chosen")).to_have_text("")
    page.locator("[data-step='1']").click()
    expect(page.locator("#summary")).to_contain_text("Event 1 of")
    page.go_back()
    expect(page.locator("#summary")).to_contain_text("Event 0 of")


def test_a_hit_is_picked_where_it_is_and_a_track_from_the_list(page: Page) -> None:
    shown(page, f"{EVENT}#view=xy&hide=particles,towers,tracks")
    box = page.locator("#stage").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2 + 6, box["y"] + box["height"] / 2 + 6)
    expect(page.locator("#chosen")).to_contain_text("Hit")
    expect(page.locator("#chosen")).to_contain_text("mm")

    marked = pixels(page)
    page.keyboard.press("Escape")
    expect(page.locator("#chosen")).to_have_text("")
    assert differ(pixels(page), marked) > 0

    page.locator("#list button").first.click()
    expect(page.locator("#chosen")).to_contain_text("49.16 GeV")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#chosen")).to_contain_text("18.17 GeV")


def test_keys_are_listed_and_work_on_the_picture_alone(page: Page) -> None:
    shown(page)
    page.locator("#stage").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    for key, view in (("2", "xy"), ("3", "rz"), ("1", "3d")):
        page.locator("#stage").focus()
        page.keyboard.press(key)
        expect(page.locator(f"[data-view='{view}']")).to_have_attribute("aria-pressed", "true")
    page.locator("#pt").focus()
    page.keyboard.press("2")
    expect(page.locator("[data-view='3d']")).to_have_attribute("aria-pressed", "true")


def test_the_picture_and_the_event_can_be_taken_along(page: Page, tmp_path: Path) -> None:
    shown(page)
    with page.expect_download() as picture:
        page.locator("#png").click()
    assert picture.value.suggested_filename == "ttbar_pu0-event-0.png"
    picture.value.save_as(tmp_path / "event.png")
    image = imread(tmp_path / "event.png")
    box = page.locator("#stage").bounding_box()
    assert box is not None
    assert image.shape[0] > box["height"], "a caption stands below"
    assert np.std(image[:, :, :3]) > 0.02

    with page.expect_download() as phoenix:
        page.locator("#phoenix").click()
    phoenix.value.save_as(tmp_path / "event.json")
    assert json.loads((tmp_path / "event.json").read_text())
    with page.expect_download() as arrow:
        page.locator("#arrow").click()
    arrow.value.save_as(tmp_path / "event.arrows")
    assert pa.ipc.open_stream(tmp_path / "event.arrows").read_all().num_rows


def predictions(path: Path, event_id: int, **how: str) -> Path:
    """Every hit of an event on a track of its own particle."""
    row = pq.read_table(sample.DIRECTORY / "tracker_hits.parquet").slice(event_id, 1).to_pylist()[0]
    ids = {particle: place for place, particle in enumerate(sorted(set(row["particle_id"])))}
    columns = {
        "event_id": pa.array([event_id] * len(row["hit_id"]), pa.int64()),
        "hit_id": pa.array(row["hit_id"], pa.int64()),
        "track_id": pa.array([ids[particle] for particle in row["particle_id"]], pa.int64()),
    }
    pq.write_table(pa.table(columns), path, **how)
    return path


@pytest.mark.parametrize("compression", ["snappy", "zstd", "none"])
def test_predictions_are_compared_in_training_events(page: Page, tmp_path: Path, compression: str) -> None:
    shown(page)
    page.locator("#predictions").set_input_files(
        predictions(tmp_path / "mine.parquet", 0, compression=compression)
    )
    expect(page.locator("#comparison")).to_contain_text("100 %")
    expect(page.locator("#legend")).to_contain_text("in a track of its particle")
    expect(page.locator("#comparison")).to_contain_text("no scores")


def test_invalid_files_of_predictions_are_reported(page: Page, tmp_path: Path) -> None:
    shown(page)
    problem, numbers = page.locator("#compare-problem"), page.locator("#comparison")
    page.locator("#predictions").set_input_files(predictions(tmp_path / "good.parquet", 0))
    expect(numbers).to_contain_text("100 %")
    (tmp_path / "text.parquet").write_text("event_id,hit_id,track_id\n" * 10)
    page.locator("#predictions").set_input_files(tmp_path / "text.parquet")
    expect(problem).to_contain_text("not a parquet file")
    expect(numbers).to_be_empty()
    expect(page.locator("#legend")).not_to_contain_text("in a track of its particle")
    pq.write_table(pa.table({"event_id": [0]}), tmp_path / "columns.parquet")
    page.locator("#predictions").set_input_files(tmp_path / "columns.parquet")
    expect(problem).to_contain_text("lacks hit_id, track_id")
    page.locator("#predictions").set_input_files(predictions(tmp_path / "other.parquet", 1))
    expect(problem).to_contain_text("no row for event 0")
    page.locator("#predictions").set_input_files(
        predictions(tmp_path / "gzip.parquet", 0, compression="gzip")
    )
    expect(problem).to_contain_text("write it with zstd or snappy")


def test_nothing_of_an_evaluated_event_can_be_compared(page: Page) -> None:
    shown(page, EVENT.replace("event=0", f"event={SCORED}"))
    expect(page.locator("#predictions")).to_be_disabled()
    expect(page.locator("#compare-hint")).to_contain_text("its truth stays on the server")
    assert page.locator("#colour option[value=particle]").is_disabled()


def test_a_scored_event_says_so_without_a_layout_shift(page: Page) -> None:
    shown(page)
    line, legend = page.locator("#scored"), page.locator("#legend")
    expect(line).to_be_hidden()
    place = legend.bounding_box()
    page.locator("#event").fill(str(SCORED))
    page.get_by_role("button", name="Show", exact=True).click()
    expect(line).to_be_visible()
    expect(line).to_contain_text("A task is scored on this event: it is shown without truth.")
    expect(line.get_by_role("link")).to_have_attribute("href", "/leaderboard")
    below = legend.bounding_box()
    assert place is not None
    assert below is not None
    assert below["y"] == place["y"]


def test_parts_and_towers_each_have_a_colour_in_the_legend(page: Page) -> None:
    shown(page)
    keys = page.locator("#legend .key")
    names, colours = keys.all_inner_texts(), keys.locator("svg > *")
    fills = [colours.nth(place).get_attribute("fill") for place in range(len(names))]
    assert {"electromagnetic towers", "hadronic towers", "pixels", "long strips"} <= set(names)
    assert len(set(fills)) == len(names)


def test_the_picture_is_first_and_sections_fold(page: Page) -> None:
    """The column next to the picture names all that it has, and never grows longer than the window."""
    page.goto(EVENT)
    expect(page.locator("#summary")).to_contain_text("shown")
    fits = "it => it.getBoundingClientRect().bottom <= innerHeight"
    for section in page.locator(".panels > details > summary").all():
        assert section.evaluate(fits)
    panels = page.locator(".panels")
    page.get_by_text("Compare with truth").click()
    page.locator("#list-title").click()
    assert panels.evaluate("it => it.clientHeight <= innerHeight && it.scrollHeight > it.clientHeight")
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.locator("#stage").evaluate("it => it.getBoundingClientRect().top < 300")
    assert page.locator("#stage").evaluate(fits)


def test_an_event_that_is_not_there_is_reported_with_the_range(page: Page, watch: Watch) -> None:
    watch.allow("status of 404")
    page.goto(EVENT.replace("event=0", "event=77"))
    expect(page.locator("#message")).to_contain_text("There is no such event")
    expect(page.locator("#message")).to_contain_text("4")
    assert page.locator("#png").is_disabled()
    page.locator("[data-step='-1']").click()
    expect(page).to_have_url(re.compile("event=76"))
    page.locator("#event").fill("4")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#summary")).to_contain_text("856 of 856 hits")
    assert page.locator("#png").is_enabled()


def test_a_backend_that_is_away_can_be_asked_again(page: Page, watch: Watch) -> None:
    watch.allow("Failed to load resource")
    page.route("**/v1/datasets/**", lambda route: route.abort())
    page.goto(EVENT)
    expect(page.locator("#message")).to_contain_text("cannot be reached")
    page.unroute("**/v1/datasets/**")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#summary")).to_contain_text("465 of 465 hits")
    expect(page.locator("#message")).to_be_hidden()


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff\xff\xff\xff\x10\x00\x00\x00" + bytes(40)])
def test_broken_data_is_reported(page: Page, body: bytes) -> None:
    page.route("**/v1/datasets/**", lambda route: route.fulfill(body=body))
    page.goto(EVENT)
    expect(page.locator("#message")).to_contain_text("This event cannot be read")


@pytest.fixture
def without_webgl(context: BrowserContext) -> None:
    """A browser whose graphics card is not to be had."""
    context.add_init_script(
        """const usual = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
          return kind.startsWith("webgl") ? null : usual.call(this, kind, ...rest);
        };"""
    )


@pytest.mark.usefixtures("without_webgl")
def test_without_a_graphics_card_the_flat_views_are_drawn(page: Page) -> None:
    shown(page)
    expect(page.locator("[data-view='3d']")).to_be_disabled()
    flat = pixels(page)
    assert np.mean(np.any(np.abs(flat - flat[2, 2]) > 0.05, axis=2)) > 0.01
    page.locator("[data-view=rz]").click()
    assert differ(pixels(page), flat) > 0.02
    page.locator("#list button").first.click()
    expect(page.locator("#chosen")).to_contain_text("49.16 GeV")


def test_hostile_text_in_the_address_is_escaped(page: Page, watch: Watch) -> None:
    watch.allow("status of 4")
    page.goto(
        "/events?repo=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&config=%22%3E%3Cscript%3E&event=0#pick=%3Cb%3E"
    )
    expect(page.locator("#message")).to_be_visible()
    assert page.locator("main img, main script").count() == 0
    assert "<img" in page.locator("#dataset").inner_text()


def test_the_form_works_without_scripts(web: ServerProcess) -> None:
    with httpx.Client(base_url=web.base_url) as browser:
        answer = browser.get("/events", params={"dataset": "some/where/ttbar_pu0", "event": "2"})
        assert answer.status_code == 303
        assert answer.headers["Location"] == "/events?repo=some%2Fwhere&config=ttbar_pu0&event=2"
        page = browser.get("/events", params={"config": sample.CONFIG, "repo": "sample", "event": "no"})
        assert page.status_code == 200
        assert f"/v1/datasets/{sample.CONFIG}/events/0?repo=sample&amp;format=phoenix" in page.text


def test_long_names_of_datasets_keep_their_end(web: ServerProcess) -> None:
    repo = "someone/collidium-simulated-events-1f9a2b3c"
    with httpx.Client(base_url=web.base_url) as browser:
        page = browser.get("/events", params={"config": "zprime_pu200", "repo": repo})
    assert (
        f'title="{repo} zprime_pu200">zprime, pileup 200 · someone/c…ed-events-1f9a2b3c</option>' in page.text
    )


def test_what_is_hidden_stays_hidden_on_another_ground(page: Page) -> None:
    """The detector's lines are made anew for each view and ground."""
    shown(page, f"{EVENT}#view=xy&hide=detector,hits,jets,particles,towers,tracks")
    empty = pixels(page)
    page.get_by_label("Detector").check()
    assert differ(pixels(page), empty) > 0.005
    page.get_by_label("Detector").uncheck()
    page.locator("#ground").click()
    page.locator("#ground").click()
    assert differ(pixels(page), empty) == 0
