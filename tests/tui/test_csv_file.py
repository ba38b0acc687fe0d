"""Tables as files for a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from collidium_tui.widgets.table import write_csv


def written(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_values_are_exact_and_times_in_utc(tmp_path: Path) -> None:
    at = datetime(2026, 11, 21, 1, 30, tzinfo=timezone(timedelta(hours=2)))
    path = write_csv(tmp_path, "requests", ["at", "credits", "reason"], [[at, Decimal("-12.340"), None]])
    assert path == tmp_path / "requests.csv"
    assert written(path) == [["at", "credits", "reason"], [at.astimezone(UTC).isoformat(), "-12.340", ""]]


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1"])  # noqa: RUF001 -- meant
def test_text_never_becomes_a_formula(tmp_path: Path, text: str) -> None:
    path = write_csv(tmp_path, "accounts", ["account"], [[text], ['say "hi", all\nof you']])
    assert written(path) == [["account"], [f"'{text}"], ['say "hi", all\nof you']]


def test_what_is_there_is_never_written_over(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere.csv"
    (tmp_path / "days.csv").symlink_to(target)
    assert write_csv(tmp_path, "days", ["day"], []).name == "days-2.csv"
    assert write_csv(tmp_path, "days", ["day"], []).name == "days-3.csv"
    assert not target.exists()


def test_half_a_file_is_not_left_behind(tmp_path: Path) -> None:
    def rows() -> Iterator[list[Any]]:
        yield ["one"]
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space left"):
        write_csv(tmp_path, "days", ["day"], rows())
    assert list(tmp_path.iterdir()) == []
