"""How tables and prose fit a terminal."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

from collidium.cli.output import cell, short_reference, table_lines, wrapped

COLUMNS = ("rank", "trackml_weighted_efficiency", "model")
ROWS = [("1", "0.9002", "alice/helix"), ("2", "0.1025", "-")]


def test_a_table_that_fits_has_no_spaces_at_the_ends_of_lines() -> None:
    for width in (None, 80):
        assert list(table_lines(COLUMNS, ROWS, width)) == [
            "rank  trackml_weighted_efficiency  model",
            "1     0.9002                       alice/helix",
            "2     0.1025                       -",
        ]


def test_a_wide_table_becomes_records_with_whole_words() -> None:
    lines = list(table_lines(COLUMNS, ROWS, 40))
    assert lines[:4] == [
        "rank                         1",
        "trackml_weighted_efficiency  0.9002",
        "model                        alice/helix",
        "",
    ]
    assert list(table_lines(COLUMNS, [], 30)) == ["(none)"]
    (_, *described) = table_lines(("name", "help"), [("x", "one two three four five six seven eight")], 30)
    assert described == ["help  one two three four five", "      six seven eight"]


def test_prose_breaks_between_words_only() -> None:
    path = "/a/path/that-is-much-longer-than/any-line-of-the/terminal"
    assert wrapped(f"see {path} for it", 30).splitlines() == ["see", path, "for it"]
    assert wrapped("a b", None, first="- ") == "- a b"


def test_values_as_people_read_them() -> None:
    assert [cell(value) for value in (0.9001578, 1.0, 1 / 3, 60.0, 123456.7)] == [
        "0.9002",
        "1",
        "0.3333",
        "60",
        "123457",
    ]
    assert [cell(Decimal(value)) for value in ("18.000", "0.125", "100")] == ["18", "0.125", "100"]
    east = datetime(2026, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    assert cell(east) == "2025-12-31 23:00:00 UTC"
    assert cell(datetime(2026, 1, 1, tzinfo=UTC)) == "2026-01-01 00:00:00 UTC"
    assert [cell(value) for value in ("", None, (), True)] == ["-", "-", "-", "yes"]


def test_the_ledgers_references_are_short() -> None:
    assert short_reference("83320a81084547f786ca3116f1071d6d:fake_rate") == "83320a81:fake_rate"
    assert short_reference("signup") == "signup"
