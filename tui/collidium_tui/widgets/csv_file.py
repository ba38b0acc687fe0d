"""Tables as files for a spreadsheet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import IO, Any, Final

#: What a spreadsheet takes for the beginning of a formula, in any script.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001 -- meant


def write_csv(directory: Path, stem: str, titles: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    """Write a new file ``<stem>.csv``, with a number where that is taken; returns its path.

    Times are in UTC, numbers exact. Text that a spreadsheet would take for a formula gets an apostrophe in
    front. Raises OSError, and leaves nothing behind then.
    """
    path, file = _new_file(directory, stem)
    try:
        with file:
            writer = csv.writer(file)
            writer.writerow([_exported(title) for title in titles])
            writer.writerows([_exported(value) for value in row] for row in rows)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def _new_file(directory: Path, stem: str) -> tuple[Path, IO[str]]:
    for number in count(1):
        path = directory / (f"{stem}.csv" if number == 1 else f"{stem}-{number}.csv")
        try:
            return path, path.open("x", newline="", encoding="utf-8", errors="backslashreplace")
        except FileExistsError:
            continue
    raise AssertionError("numbers do not end")


def _exported(value: Any) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
