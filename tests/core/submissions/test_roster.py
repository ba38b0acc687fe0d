"""Pages of a challenge's roster."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from urllib.parse import urlsplit

import pytest
from tests.core.submissions.boards import fill, platform, prepare

from collidium import database
from collidium.challenges.models import Member
from collidium.organising import roster


async def test_roster_pages_are_those_of_the_whole(connected: str) -> None:
    await prepare("toy-2")
    await fill("toy-2", 7)
    for name in ("User-00003", "anna", "zoe"):
        await Member.create(challenge="toy-2", hub_username=name, name_key=name.lower())
    whole = await roster.roster(platform(), "toy-2", limit=100)
    assert [one.hub_username for one in whole] == [
        *("anna", *(f"user-0000{number}" for number in range(7)), "zoe")
    ]
    assert [one.submissions for one in whole] == [0, *[1] * 7, 0]
    paged = []
    after = None
    while page := await roster.roster(platform(), "toy-2", limit=2, after=after):
        paged += page
        after = page[-1].hub_username
    assert paged == whole


@pytest.mark.only_on("sqlite")  # whose steps can be counted
async def test_a_roster_page_costs_the_same_of_many(connected: str) -> None:
    """The names after the page are not looked up."""
    await prepare("toy-2")
    await fill("toy-2", 300)
    values = ("toy-2", "", "toy-2", 5, "toy-2", "", "toy-2", "", 5, *["toy-2"] * 3)
    steps: list[int] = []
    with closing(sqlite3.connect(urlsplit(connected).path)) as db:
        whole = db.execute(roster._PEOPLE, values).fetchall()  # reads the schema, too
        db.set_progress_handler(lambda: steps.append(1), 10)
        assert db.execute(roster._PEOPLE, values).fetchall() == whole
        of_many = len(steps)
        db.execute("DELETE FROM submissions WHERE hub_username > 'user-00029'")
        steps.clear()
        assert db.execute(roster._PEOPLE, values).fetchall() == whole
    assert of_many < 1.2 * len(steps)


@pytest.mark.only_on("sqlite")  # PostgreSQL scans small tables
async def test_a_roster_page_reads_no_other_submissions(connected: str) -> None:
    values = ("toy-2", "", "toy-2", 50, "toy-2", "", "toy-2", "", 50, *["toy-2"] * 3)
    plan = await database.rows_of(f"EXPLAIN QUERY PLAN {roster._PEOPLE}", *values)
    steps = [str(row["detail"]) for row in plan]
    assert [step for step in steps if "submissions" in step]
    assert not [step for step in steps if "submissions" in step and "<expr>" not in step]
