"""Scores of earlier releases, by public draws: a rescoring gives them draws of a secret seed, all at once."""

from __future__ import annotations

import json
import signal
from typing import Any

import httpx
import pyarrow as pa
import pytest

from collidium import database
from collidium.runtime.failpoints import VARIABLE
from collidium.submissions.models import Scoring, Submission
from collidium.testing.server import ServerProcess
from collidium.truth.models import DrawSeed

from .conftest import ok, operating, parquet, signed_in, spoiled

#: A second challenge on the same truth.
OTHER = "spring-2027"
METRIC = "trackml_weighted_efficiency"


async def draws_of(server: ServerProcess) -> tuple[list[str], list[tuple[str, float]]]:
    """The seeds of truth versions, and for each scoring its seed and an error."""
    async with database.connected(server.environment["PLATFORM_DATABASE_URL"]):
        scorings = await Scoring.all().order_by("id")
        scorings = [one for one in scorings if "~" not in one.truth_version]
        errors = [(one.seed, one.uncertainties[METRIC]) for one in scorings]
        return [row.seed for row in await DrawSeed.exclude(truth_version__contains="~")], errors


async def age(server: ServerProcess) -> None:
    """Let all scores be of an earlier release, with errors that new draws cannot have."""
    async with database.connected(server.environment["PLATFORM_DATABASE_URL"]):
        await DrawSeed.all().update(seed="")
        await Scoring.all().update(seed="")
        for row in [*await Scoring.all(), *await Submission.all()]:
            row.uncertainties = dict.fromkeys(row.uncertainties, 7.0)
            await row.save(update_fields=["uncertainties"])


def get(server: ServerProcess, path: str) -> Any:
    return ok(httpx.get(f"{server.base_url}{path}", trust_env=False))


def rescore(server: ServerProcess, *options: str, returncode: int = 0) -> None:
    done = server.run("benchmark", "rescore", "tracking", *options, "--json")
    assert done.returncode == returncode, done.stderr


def draws_check(server: ServerProcess) -> str:
    """The status that ``collidium doctor`` reports."""
    checks = json.loads(server.run("doctor", "--json").stdout)
    (found,) = (one for one in checks if one["name"] == "draws for standard errors")
    return str(found["status"])


@pytest.fixture
def three(fresh_platform: ServerProcess, oracle: pa.Table) -> list[str]:
    """Three submissions, one of them to another challenge on the same truth."""
    with operating(fresh_platform) as operator, signed_in(fresh_platform, "anna") as anna:
        ok(operator.post("/admin/challenges", json={"name": OTHER, "task": "tracking"}), 201)
        return [
            ok(anna.post(f"/v1/challenges/{name}/submit", content=parquet(spoiled(oracle, keep))))[
                "submission_id"
            ]
            for name, keep in (("tracking", 0.6), ("tracking", 0.8), (OTHER, 0.7))
        ]


@pytest.mark.parametrize("failpoint", ["rescore.redrawn", "rescore.redraws_applied"])
async def test_a_rescoring_replaces_public_draws_at_once(
    fresh_platform: ServerProcess, three: list[str], failpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = fresh_platform
    await age(server)
    assert draws_check(server) == "warning"
    rescore(server, "--preview")
    assert await draws_of(server) == ([""], [("", 7.0)] * 3), "a preview changes nothing"
    if failpoint == "rescore.redrawn":
        await forget_new_draws(server)
    with monkeypatch.context() as armed:
        armed.setitem(server.environment, VARIABLE, failpoint)
        rescore(server, "--apply", returncode=-signal.SIGKILL)
    assert await draws_of(server) == ([""], [("", 7.0)] * 3), "a killed one changes nothing"
    rescore(server, "--apply")
    seeds, scorings = await draws_of(server)
    assert [len(seed) for seed in seeds] == [64]
    assert {seed for seed, _ in scorings} == set(seeds)
    assert all(0 < error < 1 for _, error in scorings)
    assert draws_check(server) == "ok"
    for id_ in three:
        shown = get(server, f"/v1/submissions/{id_}")
        assert 0 < shown["uncertainties"][METRIC] < 1
    rescore(server, "--apply")
    assert await draws_of(server) == (seeds, scorings), "secret draws stay"


async def forget_new_draws(server: ServerProcess) -> None:
    """Undo what a preview has prepared."""
    async with database.connected(server.environment["PLATFORM_DATABASE_URL"]):
        await Scoring.filter(truth_version__contains="~").delete()


@pytest.mark.parametrize("bytes_now", [None, b"other bytes"])
async def test_a_file_that_cannot_be_scored_keeps_its_draws(
    fresh_platform: ServerProcess, three: list[str], bytes_now: bytes | None
) -> None:
    server = fresh_platform
    await age(server)
    async with database.connected(server.environment["PLATFORM_DATABASE_URL"]):
        lost = await Submission.get(id=three[0])
    path = server.data_dir / "storage" / "predictions" / f"{lost.sha256}.parquet"
    path.unlink()
    if bytes_now is not None:
        path.write_bytes(bytes_now)
        wait_for(server, three[0])
    rescore(server, "--apply")
    (seed,), scorings = await draws_of(server)
    assert sorted(made == seed for made, _ in scorings) == [False, True, True]
    for other, paired in ((three[0], False), (three[2], True)):
        found = get(server, f"/v1/submissions/{three[1]}/comparison?other={other}")
        assert found["differences"][METRIC]["paired"] is paired
    board = get(server, "/v1/leaderboard/tracking?all=true")
    assert {place["submission_id"] for place in board} == set(three[:2]), "it keeps its place"


async def test_files_that_kept_public_draws_are_not_paired(
    fresh_platform: ServerProcess, three: list[str]
) -> None:
    server = fresh_platform
    await age(server)
    address = f"/v1/submissions/{three[0]}/comparison?other={three[1]}"
    assert get(server, address)["differences"][METRIC]["paired"], "within public draws"
    async with database.connected(server.environment["PLATFORM_DATABASE_URL"]):
        lost = [await Submission.get(id=id_) for id_ in three[:2]]
    for row in lost:
        (server.data_dir / "storage" / "predictions" / f"{row.sha256}.parquet").unlink()
    rescore(server, "--apply")
    (seed,), scorings = await draws_of(server)
    assert sorted(made == seed for made, _ in scorings) == [False, False, True]
    assert not get(server, address)["differences"][METRIC]["paired"]


async def test_redrawing_waits_until_all_files_are_left_out(
    fresh_platform: ServerProcess, three: list[str]
) -> None:
    server = fresh_platform
    await age(server)
    for path in (server.data_dir / "storage" / "predictions").iterdir():
        path.write_bytes(b"other bytes")
    for id_ in three:
        wait_for(server, id_)
    rescore(server, "--apply")
    _, scorings = await draws_of(server)
    assert scorings == [("", 7.0)] * 3
    assert draws_check(server) == "ok"
    with operating(server) as operator:
        assert ok(operator.get("/admin/challenges/tracking/waiting")) == []


def wait_for(server: ServerProcess, submission_id: str) -> None:
    """Rescore in vain, and leave out the submission that it waits for."""
    done = server.run("benchmark", "rescore", "tracking", "--apply", "--json")
    assert done.returncode != 0
    assert "waiting: " in done.stderr, done.stderr
    with operating(server) as operator:
        address = f"/admin/challenges/tracking/submissions/{submission_id}/leave-out"
        ok(operator.post(address, json={"reason": "a disk was lost"}))
