"""The watch that other tests rely on sees what it is there to see."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page
from tests.waiting import eventually

from collidium.testing.browser import Watch


@pytest.mark.parametrize(
    ("deed", "told"),
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
def test_what_goes_wrong_on_a_page_is_told(
    deed: str, told: str, context: BrowserContext, watch: Watch
) -> None:
    page = context.new_page()
    page.goto("/docs")
    assert watch.problems == []
    page.evaluate(f"() => {{ {deed} }}")
    eventually(lambda: page.evaluate("1") and any(told in problem for problem in watch.problems))
    watch.allow(".")
    assert watch.problems == []


def test_webgl_is_drawn_in_software(page: Page) -> None:
    page.goto("/docs")
    page.evaluate("() => document.body.append(document.createElement('canvas'))")
    assert page.evaluate("() => document.querySelector('canvas').getContext('webgl2') !== null")
