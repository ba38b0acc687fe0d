"""Tests of web pages in Chromium: records errors of pages, and checks a loaded page.

Checks cover accessibility, overflow, layout shift and keyboard access, for the page's current window size,
colours and medium. Needs Playwright, which the extra ``test`` installs, and Chromium.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    WebError,
    sync_playwright,
)

#: No background activity, no other hosts, and WebGL in software.
ARGUMENTS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
)
#: Timeout of actions on a page in milliseconds.
PATIENCE: Final = 30_000


def program() -> str:
    """The path of Chromium. Raises RuntimeError, instead of skipping tests, if it is not installed."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise RuntimeError("the tests of the web apps need Chromium: Debian's package chromium")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser with a fresh profile.

    No event loop can run in this process while it is open, so modules that use it must not have async tests.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """Collects console errors, uncaught exceptions and requests to other hosts.

    Console errors include violations of the content security policy and responses with status 400 or more.
    """

    def __init__(self, context: BrowserContext, *origins: str) -> None:
        self._origins = set(origins)
        self._expected: list[re.Pattern[str]] = []
        self._seen: list[str] = []
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("request", self._request)

    def allow(self, pattern: str) -> None:
        """Ignore problems that match a regular expression, such as ``status of 404``."""
        self._expected.append(re.compile(pattern))

    @property
    def problems(self) -> list[str]:
        return [seen for seen in self._seen if not any(known.search(seen) for known in self._expected)]

    def _console(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self._seen.append(f"on the console: {message.text} ({message.location['url']})")

    def _error(self, error: WebError) -> None:
        self._seen.append(f"exception: {error.error}")

    def _request(self, request: Request) -> None:
        address = urlsplit(request.url)
        origin = f"{address.scheme}://{address.netloc}"
        if address.scheme not in ("blob", "data") and origin not in self._origins:
            self._seen.append(f"a request to another host: {request.url}")


def sign_in(page: Page, token: str) -> None:
    """Sign in by the consent page of the local hub."""
    page.goto("/web/sign-in")
    page.get_by_label("token").fill(token)
    page.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_url(lambda url: "/hub/" not in url and "/web/" not in url)


#: Layout shift since the page began to load, without that after user input.
_SHIFT = """() => new Promise(resolve => {
    let sum = 0;
    const add = list => { for (const shift of list) if (!shift.hadRecentInput) sum += shift.value; };
    const observer = new PerformanceObserver(list => add(list.getEntries()));
    observer.observe({type: "layout-shift", buffered: true});
    requestAnimationFrame(() => requestAnimationFrame(() => { add(observer.takeRecords()); resolve(sum); }));
})"""

#: Starts a walk by keyboard: stores all visible controls, and resets the focus.
_BEGIN = """() => {
    const usable = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
    const wanted = [...document.querySelectorAll(usable)].filter(element =>
        !element.disabled && element.tabIndex >= 0 && element.checkVisibility({visibilityProperty: true}));
    window.walk = {seen: new Set(), wanted};
    document.activeElement.blur();
}"""

#: A step of the walk: null at the end, "" for a visible focus, else the element without one.
_STEP = """() => {
    const element = document.activeElement, {seen} = window.walk;
    if (element === document.body || seen.has(element)) return null;
    seen.add(element);
    const style = getComputedStyle(element);
    const shown = style.outlineStyle !== "none" || style.boxShadow !== "none";
    return shown ? "" : element.outerHTML.slice(0, 120);
}"""

#: Controls that the walk missed. Of a group of radio buttons the Tab key reaches only one.
_MISSED = """() => {
    const {seen, wanted} = window.walk;
    const groups = new Set([...seen].filter(element => element.type === "radio").map(radio => radio.name));
    const reached = element => seen.has(element) || (element.type === "radio" && groups.has(element.name));
    return wanted.filter(element => !reached(element)).map(element => element.outerHTML.slice(0, 120));
}"""


def serious_findings(page: Page) -> list[str]:
    """Serious and critical accessibility problems found by axe, one line each."""
    page.evaluate(AXE_SCRIPT)
    found: list[dict[str, Any]] = page.evaluate("() => axe.run({resultTypes: ['violations']})")["violations"]
    return [
        f"{finding['id']}: {node['html'][:160]} ({node['failureSummary']})"
        for finding in found
        if finding["impact"] in ("serious", "critical")
        for node in finding["nodes"]
    ]


def layout_shift(page: Page) -> float:
    """The cumulative layout shift since the page began to load; below 0.1 is good."""
    return float(page.evaluate(_SHIFT))


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    return int(
        page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )


def keyboard_gaps(page: Page) -> list[str]:
    """Controls that the Tab key does not reach, or that show no focus."""
    page.evaluate(_BEGIN)
    gaps = []
    while True:
        page.keyboard.press("Tab")
        step = page.evaluate(_STEP)
        if step is None:
            break
        if step:
            gaps.append(f"does not show its focus: {step}")
    return gaps + [f"not reached: {element}" for element in page.evaluate(_MISSED)]
