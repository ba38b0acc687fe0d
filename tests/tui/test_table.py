"""The table of records, on its own."""

from __future__ import annotations

from rich.text import Text
from textual.app import App, ComposeResult

from collidium_tui.widgets.table import Column, Table


class _Shown(App[None]):
    def compose(self) -> ComposeResult:
        yield Table[str]([Column("id", str, show=Text)], key=str, of="names")


async def test_rows_drawn_early_are_drawn_again_with_their_widths() -> None:
    """Lines that are drawn before the columns know how wide the new rows are."""
    async with _Shown().run_test() as pilot:
        table = pilot.app.query_one(Table)
        table.show_rows(["a"])
        await pilot.pause()
        table.show_rows(["a name longer than its heading"])
        early = table.render_line(1).text
        await pilot.pause()
        assert "its heading" not in early
        assert "a name longer than its heading" in table.render_line(1).text
