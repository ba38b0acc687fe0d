"""The browser checks that other tests rely on detect problems."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page
from tests.waiting import eventually

from collidium.testing.browser import Watch, keyboard_gaps, layout_shift, overflow, serious_findings


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("console.error('broken')", "on the console: broken"),
        ("setTimeout(() => { throw new Error('thrown') })", "exception: thrown"),
        ("fetch('/v1/nothing')", "status of 404"),
        (
            "fetch('http://other.example/').catch(() => {})",
            "a request to another host: http://other.example/",
        ),
    ],
)
def test_errors_of_a_page_are_reported(
    script: str, message: str, context: BrowserContext, watch: Watch
) -> None:
    page = context.new_page()
    page.goto("/healthz")
    assert watch.problems == []
    page.evaluate(f"() => {{ {script} }}")
    eventually(lambda: page.evaluate("1") and any(message in problem for problem in watch.problems))
    watch.allow(".")
    assert watch.problems == []


def test_webgl_is_drawn_in_software(page: Page) -> None:
    page.goto("/healthz")
    page.evaluate("() => document.body.append(document.createElement('canvas'))")
    assert page.evaluate("() => document.querySelector('canvas').getContext('webgl2') !== null")


BARRIERS = """<html lang="en"><title>Barriers</title><style>.blind:focus { outline: none }</style>
<main><h1>Barriers</h1><img src="data:," width="2000" height="1">
<p style="color: #ccc; background: #fff">pale</p><a href="#1" class="blind">blind</a>
<a href="#2" tabindex="1">first</a><button onfocus="this.blur()">shy</button></main>"""


def test_barriers_are_reported(page: Page) -> None:
    page.set_content(BARRIERS)
    found = {finding.partition(":")[0] for finding in serious_findings(page)}
    assert found == {
        "image-alt",
        "color-contrast",
        "tabindex",
    }
    assert overflow(page) > 0
    gaps = keyboard_gaps(page)
    assert any("does not show its focus" in gap and "blind" in gap for gap in gaps)
    assert any("not reached" in gap and "shy" in gap for gap in gaps)


def test_what_moves_is_reported(page: Page) -> None:
    page.goto("/")
    assert layout_shift(page) < 0.1
    page.evaluate("""() => document.body.insertAdjacentHTML("afterbegin", "<p>" + "moves <br>".repeat(20))""")
    eventually(lambda: layout_shift(page) > 0.1)
