"""A column is declared once and shown by each face; those of files are fields of results."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final

import pytest
from jinja2 import Environment, PackageLoader

from collidium.cli.output import print_items
from collidium.presentation import evaluations, places
from collidium.presentation.columns import ListColumn
from collidium.presentation.quantities import duration_text, size_text, value_text
from collidium.records import Evaluation, Place, Result, as_json
from collidium_plugins.webapps.rendering import FILTERS

AT: Final = datetime(2026, 11, 29, 1, 2, 3, tzinfo=UTC)


def place(**fields: Any) -> Place:
    given = {"rank": 1, "submission_id": "1", "hub_username": "ben", "submitted_at": AT, "scores": {}}
    return Place(**{**given, "credits_earned": Decimal(0), **fields})


#: A column that no face gives markup of its own.
SCORER: Final[ListColumn[Place]] = ListColumn("scorer version", lambda place: place.scorer_version)


def test_a_command_shows_a_declared_column(capsys: pytest.CaptureFixture[str]) -> None:
    print_items([place(scorer_version="7"), place()], [places.RANK, SCORER])
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["rank", "scorer", "version"],
        ["1", "7"],
        ["1", "-"],
    ]


def test_columns_of_one_title_are_both_shown(capsys: pytest.CaptureFixture[str]) -> None:
    print_items([place()], [places.RANK, SCORER.titled("rank")])  # a metric may be called so
    assert capsys.readouterr().out.splitlines()[0].split() == ["rank", "rank"]


def test_a_page_shows_a_declared_column() -> None:
    templates = Environment(loader=PackageLoader("collidium_plugins.webapps"), autoescape=True)
    templates.filters |= FILTERS
    macros: Any = templates.get_template("webapps/metrics.html").module
    assert macros.heading(SCORER) == "Scorer version"
    shown = macros.plain_cell(SCORER, place(scorer_version="<7>")).strip()
    assert shown == '<td data-label="Scorer version"><bdi>&lt;7&gt;</bdi></td>'


def test_columns_of_files_are_fields_of_results() -> None:
    result = Result(
        rank=2,
        status="ranked",
        submission_id="1",
        hub_username="ben",
        submitted_at=AT,
        scores={"eff": 0.5},
        credits_earned=Decimal(1),
    )
    header, row = places.file_header(["eff"]), list(places.file_row(as_json(result), ["eff"]))
    assert len(header) == len(row) == len(set(header))
    assert dict(zip(header, row, strict=True)) | {"rank": 2, "account": "ben", "eff": 0.5} == dict(
        zip(header, row, strict=True)
    )


@pytest.mark.parametrize(
    ("fields", "command", "console"),
    [
        ({}, ("ben", "no"), ("ben", "NOT YET")),
        ({"team": "Blue"}, ("ben, team Blue", "no"), ("ben", "NOT YET")),
        ({"baseline": True, "verified_at": AT}, ("ben (baseline)", "yes"), ("ben (baseline)", "yes")),
    ],
)
def test_faces_describe_a_place(fields: Any, command: tuple[str, str], console: tuple[str, str]) -> None:
    from collidium_tasks.tracking_latency import TrackingLatencyTask

    card: Any = TrackingLatencyTask().card  # its latency is self-reported
    for columns, wanted in ((places.in_commands(card), command), (places.in_console(card), console)):
        shown = {column.title: column.shown(place(**fields)) for column in columns}
        assert (shown["account"], shown["verified"]) == wanted


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (None, "—"),
        ("", "—"),
        (True, "yes"),
        (12345, "12,345"),
        (Decimal("2.50"), "2.5"),
        (0.123456, "0.1235"),
        (AT, "2026-11-29 01:02 UTC"),
        ("text", "text"),
    ],
)
def test_a_value_is_formatted_by_its_type(value: object, wanted: str) -> None:
    assert value_text(value) == wanted


def test_sizes_and_durations_have_one_unit() -> None:
    assert [size_text(count) for count in (999, 1500, 2 * 10**12)] == ["999 B", "1.5 kB", "2.0 TB"]
    assert [duration_text(seconds) for seconds in (4, 180, 7800)] == ["4 s", "3 min", "2 h 10 min"]


def test_the_state_of_a_model_has_its_progress() -> None:
    running = Evaluation(*("1", "c", "t", "ben", "running", AT, "00", 1), events=200, events_done=50)
    assert evaluations.state_text(running) == "running, 50 of 200 events"
    assert evaluations.short_state(running) == "running 25%"
