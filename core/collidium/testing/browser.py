"""Chromium, people in it, and a watch on what pages do that no page of the platform may do.

Needs Playwright, which the extra ``test`` brings, and Chromium from wherever the machine has its programs.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    WebError,
    sync_playwright,
)

#: Nothing that it does by itself, no other machine, and WebGL in software.
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
#: Milliseconds that anything on a page may take; a bound, not a measurement.
PATIENCE: Final = 30_000


def program() -> str:
    """Where Chromium is; fails, never skips, where there is none."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise RuntimeError("the tests of the web apps need Chromium: Debian's package chromium")
    return found


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a history.

    While it is open no event loop can be run in this process: a module that uses it has no ``async`` test.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Watch:
    """Collects errors on the console, exceptions of scripts and calls to other hosts.

    A breach of the content security policy is told on the console, and so is an answer of 400 or more.
    """

    def __init__(self, context: BrowserContext, *origins: str) -> None:
        self._origins = set(origins)
        self._expected: list[re.Pattern[str]] = []
        self._seen: list[str] = []
        context.on("console", self._console)
        context.on("weberror", self._error)
        context.on("request", self._request)

    def allow(self, pattern: str) -> None:
        """What a test brings about on purpose: ``status of 404``."""
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
    """Sign in as people do: by the pages' own link and the local hub's consent page."""
    page.goto("/web/sign-in")
    page.get_by_label("token").fill(token)
    page.get_by_role("button", name="Allow", exact=True).click()
    page.wait_for_url(lambda url: "/hub/" not in url and "/web/" not in url)
