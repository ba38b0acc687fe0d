"""What the web apps cost a browser: bytes, requests, first paint; and paging through a long leaderboard.

    python perf/web_pages.py [--rows 10000] [--rounds 5] [--quick]

A server on loopback with a benchmark, models and orders, and headless Chromium with WebGL in software. Each
page is loaded by a browser with an empty cache, and the median of the rounds is reported. Bytes are those
transferred, headers included; the first contentful paint counts from the start of the navigation. Findings
are axe's serious and critical ones. Then the leaderboard of tracking gets 10,000 rows, and a user pages
through it.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import leaderboard_seed
from docs.web_pictures import Furnished, furnish
from playwright.sync_api import Browser, Page, StorageState, ViewportSize, expect

from collidium.testing.browser import Watch, chromium, layout_shift, serious_findings, sign_in
from collidium.testing.server import ServerProcess

SIZE: ViewportSize = {"width": 1280, "height": 800}
PAGES = (
    "/",
    "/events",
    "/simulate",
    "/leaderboard/tracking",
    "/leaderboard/submissions/{submission_id}",
    "/models",
)
KINDS = ("page and data", "styles", "scripts", "pictures")
COLUMNS = ("page", "kB", *KINDS, "requests", "first paint (ms)", "shift", "errors", "findings")
#: Of a signed-in user.
OWN_PAGES = ("/leaderboard/tracking/submit", "/leaderboard/mine")

FIRST_ROW = "[data-places] tbody tr:first-child"

#: The navigation and everything that it loaded, with the bytes of each; and when there was something to see.
_LOADED = """() => ({
    loads: ["navigation", "resource"].flatMap(kind => performance.getEntriesByType(kind)).map(entry => ({
        path: new URL(entry.name).pathname, bytes: entry.transferSize,
    })),
    painted: performance.getEntriesByName("first-contentful-paint")[0].startTime,
})"""


@dataclass(frozen=True, slots=True)
class Visit:
    """What one visit of a page cost: bytes by kind, and milliseconds."""

    bytes: dict[str, int]
    requests: int
    first_paint: float
    shift: float
    errors: int
    findings: int


def visit(browser: Browser, base_url: str, address: str, cookies: StorageState | None) -> Visit:
    """Load a page in a browser that never saw any, with the cookies of a signed-in user."""
    with browser.new_context(base_url=base_url, viewport=SIZE, storage_state=cookies) as context:
        watch = Watch(context, base_url)
        page = context.new_page()
        page.goto(address, wait_until="networkidle")
        loaded: dict[str, Any] = page.evaluate(_LOADED)
        sizes: dict[str, int] = defaultdict(int)
        for load in loaded["loads"]:
            sizes[_kind(load["path"])] += load["bytes"]
        shift = layout_shift(page)
        return Visit(
            dict(sizes),
            len(loaded["loads"]),
            loaded["painted"],
            shift,
            len(watch.problems),
            len(serious_findings(page)),
        )


def _kind(path: str) -> str:
    if not path.startswith("/web/static/"):
        return "page and data"
    return {".css": "styles", ".js": "scripts"}.get(Path(path).suffix, "pictures")


def print_visits(address: str, visits: Sequence[Visit]) -> None:
    """Print the row of a page."""
    first = visits[0]
    kilobytes = [sum(first.bytes.values()), *(first.bytes.get(kind, 0) for kind in KINDS)]
    numbers = [f"{size / 1000:.0f}" for size in kilobytes] + [
        str(first.requests),
        f"{statistics.median(one.first_paint for one in visits):.0f}",
        f"{max(one.shift for one in visits):.3f}",
        str(sum(one.errors for one in visits)),
        str(first.findings),
    ]
    print(f"| `{address}` | {' | '.join(numbers)} |", flush=True)


def turn_pages(page: Page, turns: int) -> list[float]:
    """Milliseconds from the click on the link to the next page until its rows stand there, turn by turn."""
    page.goto("/leaderboard/tracking", wait_until="networkidle")
    times = []
    for _ in range(turns):
        first = page.locator(FIRST_ROW).inner_text()
        started = time.perf_counter()
        page.locator("a[rel=next]").first.click()
        expect(page.locator(FIRST_ROW)).not_to_have_text(first, use_inner_text=True)
        times.append((time.perf_counter() - started) * 1000)
        page.wait_for_load_state("networkidle")
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="a smoke run: one round, few rows")
    given = parser.parse_args()
    if given.quick:
        given.rows, given.rounds, given.turns = 300, 1, 2
    settings = {"PLATFORM_MOCK_SECONDS": "0.1", "PLATFORM_LOG_LEVEL": "warning"}
    with tempfile.TemporaryDirectory() as home, ServerProcess(Path(home), env=settings) as server:
        furnished = furnish(server)
        with chromium() as browser:
            print_pages(browser, server.base_url, furnished, given.rounds)
        asyncio.run(leaderboard_seed.fill(f"sqlite:///{server.data_dir / 'collidium.sqlite3'}", given.rows))
        with chromium() as browser, browser.new_context(base_url=server.base_url, viewport=SIZE) as context:
            times = turn_pages(context.new_page(), given.turns)
    print(
        f"\nA leaderboard of {given.rows} rows: {statistics.median(times):.0f} ms from the click to the next "
        f"page, {max(times):.0f} ms the slowest of {len(times)}."
    )


def print_pages(browser: Browser, base_url: str, furnished: Furnished, rounds: int) -> None:
    """Print the table of all pages."""
    print(f"| {' | '.join(COLUMNS)} |\n|---|{'---:|' * (len(COLUMNS) - 1)}")
    with browser.new_context(base_url=base_url) as context:
        sign_in(context.new_page(), furnished.tokens["anna"])
        cookies = context.storage_state()
    for addresses, state in ((PAGES, None), (OWN_PAGES, cookies)):
        for address in addresses:
            path = address.format(submission_id=furnished.submission_id)
            print_visits(address, [visit(browser, base_url, path, state) for _ in range(rounds)])


if __name__ == "__main__":
    main()
