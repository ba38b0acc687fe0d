"""Submission of a model in a browser: its progress, card and comparison."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from tests.core.submissions import models

from collidium.client import Client
from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.browser import Watch, keyboard_gaps, overflow, serious_findings
from collidium.testing.server import ServerProcess

from .conftest import SignIn

pytestmark = pytest.mark.usefixtures("shared_truth")

PHONE = {"width": 390, "height": 844}
MANIFEST = 'license = "CC0-1.0"\n' + models.MANIFEST.format(task="tracking")


@pytest.fixture
def files(tmp_path: Path) -> Callable[[int], tuple[Path, Path]]:
    """Model and manifest; each number another file."""

    def write(number: int) -> tuple[Path, Path]:
        (tmp_path / f"{number}.onnx").write_bytes(models.layers(number))
        (tmp_path / "manifest.toml").write_text(MANIFEST)
        return tmp_path / f"{number}.onnx", tmp_path / "manifest.toml"

    return write


def is_for_everybody(page: Page) -> None:
    assert serious_findings(page) == []
    page.set_viewport_size(PHONE)
    assert overflow(page) == 0
    page.reload()  # without what has the focus
    assert keyboard_gaps(page) == []
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize("streamed", [True, False])
def test_a_model_is_followed_until_its_card(
    page: Page, sign_in: SignIn, watch: Watch, files: Callable[[int], tuple[Path, Path]], streamed: bool
) -> None:
    sign_in(page, "follows-models")
    if not streamed:
        watch.allow("Failed to load resource")
        page.route("**/progress", lambda route: route.abort())
    page.goto("/leaderboard/tracking/submit")
    model, manifest = files(10 + streamed)
    page.get_by_label("An ONNX file").set_input_files(model)
    page.get_by_label("Its manifest").set_input_files(manifest)
    page.get_by_role("button", name="Send the model").click()
    page.wait_for_url("**/mine/models/*")
    page.evaluate("window.isTheSamePage = true")
    card = page.get_by_role("link", name="Its scores and its card")
    expect(card).to_be_visible()
    assert page.evaluate("window.isTheSamePage"), "it was followed, not loaded again"
    if not streamed:
        return
    is_for_everybody(page)
    card.click()
    shown = page.locator("section", has=page.get_by_role("heading", name="The model", exact=True))
    for text in ("4 parameters", "CC0-1.0", "1 node, opset 17"):
        expect(shown).to_contain_text(text)
    shown.get_by_text("Inputs, outputs and operators").click()
    expect(shown.get_by_role("region", name="Inputs of the graph")).to_contain_text("volume_id, int64, flat")
    expect(shown.get_by_role("region", name="Operators of the graph")).to_contain_text("Add")
    expect(page.get_by_label("Commands that run the model again")).to_contain_text("model reproduce")
    is_for_everybody(page)


def test_the_server_reproduces_a_model_for_its_owner(
    page: Page,
    sign_in: SignIn,
    web: ServerProcess,
    token: Callable[[str], str],
    files: Callable[[int], tuple[Path, Path]],
) -> None:
    """All readers see the results."""
    public = web.run(
        *("truth", "import", "tracking", "--from", str(EVENTS_DIRECTORY), "--config", "ttbar_pu0"),
        *("--events", "0:3", "--not-current", "--public"),
    )
    assert public.returncode == 0, public.stderr
    sign_in(page, "reproduces-models")
    with Client(web.base_url, token("reproduces-models")) as client:
        sent = client.submit_model("tracking", *files(30))
        address = f"/leaderboard/submissions/{client.wait_for_model(sent.evaluation_id).submission_id}"
        page.goto(address)
        page.get_by_role("button", name="Run it again on public events").click()
        expect(page.get_by_text("The server ran it again on public events")).to_be_visible()
        client.wait_for_model(client.evaluations().items[0].evaluation_id)
    page.context.clear_cookies()
    page.goto(address)
    again = page.locator("section", has=page.get_by_role("heading", name="Reproduce", exact=True))
    expect(again.get_by_role("table")).to_contain_text("trackml_weighted_efficiency")
    expect(again).to_contain_text("public events 0 to 2 of ttbar_pu0")
    is_for_everybody(page)


def test_two_models_are_compared_and_drawn(
    page: Page,
    web: ServerProcess,
    token: Callable[[str], str],
    files: Callable[[int], tuple[Path, Path]],
) -> None:
    with Client(web.base_url, token("compares-models")) as client:
        sent = [client.submit_model("tracking", *files(number)) for number in (20, 21)]
        one, other = [client.wait_for_model(each.evaluation_id).submission_id or "" for each in sent]
        apart = client.compare(one, other).differences["trackml_weighted_efficiency"]
        assert (apart.value, apart.uncertainty, apart.paired) == (0.0, 0.0, True), "they predict the same"
    page.goto(f"/leaderboard/submissions/{one}")
    page.get_by_label("Submission", exact=True).fill(other)
    page.get_by_role("button", name="Compare").click()
    table = page.get_by_role("table").filter(has_text="The other")
    for text in ("Parameters", "Seconds of an event", "trackml_weighted_efficiency"):
        expect(table).to_contain_text(text)
    is_for_everybody(page)
    page.goto("/leaderboard/tracking")
    plot = page.get_by_role("img", name="Pareto front: TrackML efficiency and Parameters")
    expect(plot).to_be_visible()
    assert serious_findings(page) == []
