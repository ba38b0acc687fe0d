"""A search line reports the text that is wanted, not every key."""

from __future__ import annotations

import pytest
from tests.waiting import until
from textual.app import App, ComposeResult

from collidium_tui.screens import accounts
from collidium_tui.screens.accounts import SEARCH_PAUSE, SEARCHES_APART, Search


class Searching(App[None]):
    """Keeps what is looked for."""

    def __init__(self) -> None:
        super().__init__()
        self.searched: list[tuple[str, bool]] = []

    def compose(self) -> ComposeResult:
        yield Search("name")

    def on_search_requested(self, event: Search.Requested) -> None:
        self.searched.append((event.text, event.done))


async def test_what_is_typed_is_shown_when_the_typing_pauses() -> None:
    async with Searching().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Searching)
        app.query_one(Search).value = " ada "
        await until(lambda: bool(app.searched))
        assert app.searched == [("ada", False)]


async def test_enter_shows_at_once_and_escape_empties(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "SEARCH_PAUSE", 3600.0)
    async with Searching().run_test() as pilot:
        app = pilot.app
        assert isinstance(app, Searching)
        await pilot.press(*"ada", "enter")
        await pilot.press(*"x", "escape")
        assert app.searched == [("ada", True), ("", True)]


async def test_two_searches_are_a_second_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(Search, "set_timer", lambda field, delay, then: waits.append(delay))
    monkeypatch.setattr(accounts, "monotonic", lambda: 100.0)
    async with Searching().run_test() as pilot:
        await pilot.press("a", "enter", "b")
    assert waits == [SEARCH_PAUSE, SEARCHES_APART]


async def test_long_text_is_rejected() -> None:
    async with Searching().run_test() as pilot:
        field = pilot.app.query_one(Search)
        field.insert_text_at_cursor("It was a dark and stormy night. " * 1000)
        await pilot.pause()
        assert len(field.value) <= accounts.LONGEST_SEARCH
