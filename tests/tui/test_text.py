"""Names in lists: shortened in the middle, in cells of the terminal."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from collidium_tui.widgets.text import shortened


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("anna", "anna"),
        ("summer-school-2026-tracking", "summer…cking"),
        ("王小明王小明王小明", "王小明…小明"),
    ],
)
def test_long_names_keep_both_ends(name: str, shown: str) -> None:
    assert shortened(name, 12).replace(" ", "") == shown
    assert cell_len(shortened(name, 12)) <= 12
