"""Standard errors that leave the platform have two significant digits; the database keeps all of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

import httpx
import pyarrow as pa
import pytest

from collidium import database
from collidium.submissions.models import Scoring
from collidium.testing.server import ServerProcess
from collidium.truth.models import DrawSeed

from .conftest import ok, operating, parquet, signed_in, spoiled

SUBMIT = "/v1/benchmark/tracking/submit"
BOARD = "/v1/leaderboard/tracking"


def errors_in(value: Any) -> Iterator[float]:
    """All standard errors of an answer."""
    if isinstance(value, dict):
        for name, one in value.items():
            if name == "uncertainties":
                yield from one.values()
            elif name == "uncertainty":
                yield one
            else:
                yield from errors_in(one)
    elif isinstance(value, list):
        for one in value:
            yield from errors_in(one)


def has_two_digits(error: float) -> bool:
    return float(f"{error:.1e}") == error


@pytest.fixture
def two(alice: httpx.Client, oracle: pa.Table) -> tuple[httpx.Client, list[str]]:
    """An account and two submissions of it."""
    made = [ok(alice.post(SUBMIT, content=parquet(spoiled(oracle, keep)))) for keep in (0.61, 0.83)]
    return alice, [one["submission_id"] for one in made]


def test_errors_have_two_digits_wherever_they_are_shown(two: tuple[httpx.Client, list[str]]) -> None:
    alice, (one, other) = two
    shown = [
        ok(alice.get(path))
        for path in (
            f"/v1/submissions/{one}",
            f"/v1/submissions/{one}/comparison?other={other}",
            "/v1/me/submissions",
            f"{BOARD}?all=true",
            f"{BOARD}/history",
            "/v1/challenges/tracking/results?all=true",
        )
    ]
    found = [list(errors_in(answer)) for answer in shown]
    assert all(found), found
    assert not [error for errors in found for error in errors if not has_two_digits(error)]
    table = alice.get("/v1/challenges/tracking/results?format=csv&all=true").text
    rows = list(csv.DictReader(table.splitlines()))
    cells = [float(row[name]) for row in rows for name in row if name.endswith("_error") and row[name]]
    assert len(cells) >= 2
    assert all(map(has_two_digits, cells))


def test_a_receipt_has_errors_of_two_digits(alice: httpx.Client, oracle: pa.Table) -> None:
    first, again = (ok(alice.post(SUBMIT, content=parquet(spoiled(oracle, 0.71)))) for _ in range(2))
    assert len(first["uncertainties"]) == 5
    assert all(map(has_two_digits, first["uncertainties"].values()))
    assert again["uncertainties"] == first["uncertainties"]


@pytest.mark.parametrize("public_percent", [None, 50])
async def test_each_version_of_truth_has_a_secret_seed(
    fresh_platform: ServerProcess, oracle: pa.Table, public_percent: int | None
) -> None:
    with operating(fresh_platform) as operator, signed_in(fresh_platform, "anna") as anna:
        made = {"name": "spring-2027", "task": "tracking", "public_percent": public_percent}
        ok(operator.post("/admin/challenges", json=made), 201)
        ok(anna.post("/v1/challenges/spring-2027/submit", content=parquet(spoiled(oracle, 0.7))))
        shown = anna.get("/v1/challenges/spring-2027/leaderboard").text
    async with database.connected(fresh_platform.environment["PLATFORM_DATABASE_URL"]):
        seeds = {row.truth_version: row.seed for row in await DrawSeed.all()}
        scorings = await Scoring.all()
    assert len(seeds) == len(set(seeds.values())) == (1 if public_percent is None else 2)
    assert all(len(seed) == 64 for seed in seeds.values())
    assert {scoring.truth_version: scoring.seed for scoring in scorings} == seeds
    assert not any(seed in shown + fresh_platform.log() for seed in seeds.values())
