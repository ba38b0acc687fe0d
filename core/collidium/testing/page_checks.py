"""What a page in a browser is checked for: accessibility, room, stillness, a way for the keyboard.

Each takes a page that was loaded and looks at it as it is: in its window, its colours, its medium.
"""

from __future__ import annotations

from typing import Any

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

#: What the first paint and everything after it moved, without what somebody's own deed moved.
_SHIFT = """() => new Promise(resolve => {
    let sum = 0;
    const add = list => { for (const shift of list) if (!shift.hadRecentInput) sum += shift.value; };
    const observer = new PerformanceObserver(list => add(list.getEntries()));
    observer.observe({type: "layout-shift", buffered: true});
    requestAnimationFrame(() => requestAnimationFrame(() => { add(observer.takeRecords()); resolve(sum); }));
})"""

#: All that can be used and seen; and what the focus was on so far.
_BEGIN = """() => {
    const usable = 'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]';
    const wanted = [...document.querySelectorAll(usable)].filter(element =>
        !element.disabled && element.tabIndex >= 0 && element.checkVisibility({visibilityProperty: true}));
    window.walk = {seen: new Set(), wanted};
    document.activeElement.blur();
}"""

#: Where the focus is now; whether it is there for the first time.
_STEP = """() => {
    const element = document.activeElement, {seen} = window.walk;
    if (element === document.body || seen.has(element)) return null;
    seen.add(element);
    const style = getComputedStyle(element);
    const shown = style.outlineStyle !== "none" || style.boxShadow !== "none";
    return shown ? "" : element.outerHTML.slice(0, 120);
}"""

#: Of radio buttons with one name the keyboard reaches one; arrows lead to the others.
_MISSED = """() => {
    const {seen, wanted} = window.walk;
    const groups = new Set([...seen].filter(element => element.type === "radio").map(radio => radio.name));
    const reached = element => seen.has(element) || (element.type === "radio" && groups.has(element.name));
    return wanted.filter(element => !reached(element)).map(element => element.outerHTML.slice(0, 120));
}"""


def serious_findings(page: Page) -> list[str]:
    """What axe finds to be a serious or critical barrier, a line each."""
    page.evaluate(AXE_SCRIPT)
    found: list[dict[str, Any]] = page.evaluate("() => axe.run({resultTypes: ['violations']})")["violations"]
    return [
        f"{finding['id']}: {node['html'][:160]} ({node['failureSummary']})"
        for finding in found
        if finding["impact"] in ("serious", "critical")
        for node in finding["nodes"]
    ]


def layout_shift(page: Page) -> float:
    """How much of the page moved since it began to load, as browsers count it; below 0.1 is good."""
    return float(page.evaluate(_SHIFT))


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window: what one would have to scroll sideways."""
    return int(
        page.evaluate("() => document.documentElement.scrollWidth - document.documentElement.clientWidth")
    )


def keyboard_gaps(page: Page) -> list[str]:
    """What the Tab key does not lead to, and what does not show that it has the focus."""
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
