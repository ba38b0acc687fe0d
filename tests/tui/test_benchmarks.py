"""Benchmarks: tasks, leaderboards, self-reported scores to be verified, challenges to be closed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.api.timed_task import install_timed
from tests.core.servers import FIRST, STOP, write_oracle
from tests.tui import seeding
from tests.tui.conftest import ADMIN_TOKEN
from tests.tui.consoles import (
    LARGE,
    SMALL,
    console_on,
    holds,
    matches,
    show,
    shows,
    signed_in,
    text,
    types,
)
from tests.waiting import eventually
from textual.pilot import Pilot

from collidium.challenges.models import Arrival
from collidium.client import Client
from collidium.demo import EVENTS_DIRECTORY
from collidium.model_runs.models import Evaluation
from collidium.submissions.models import Submission, Team, WaitingFile
from collidium.testing.server import ServerProcess

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a task of which operators verify a part."""
    site = tmp_path_factory.mktemp("site")
    install_timed(site / "site")
    env = {"ADMIN_TOKEN": ADMIN_TOKEN, "PYTHONPATH": str(site / "site")}
    with ServerProcess(site / "backend", env=env) as server:
        yield server


@pytest.fixture(scope="module")
def server(backend: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> ServerProcess:
    """Tracking in its public phase, and two submissions to the task that is timed by submitters."""
    run(backend, "task", "add", "timed")
    for task in ("tracking", "timed"):
        events = ("--config", "ttbar_pu0", "--events", f"{FIRST}:{STOP}")
        run(backend, "truth", "import", task, "--from", str(EVENTS_DIRECTORY), *events)
    with Client(backend.base_url, admin_token=backend.admin_token) as admin:
        admin.admin_edit_challenge("tracking", public_percent=50)
    path = tmp_path_factory.mktemp("predictions") / "oracle.parquet"
    oracle = write_oracle(path)
    with Client(backend.base_url, backend.add_user("ann")) as ann:
        ann.submit("tracking", path)
    for name, seconds in (("ben", 0.5), ("cleo", 0.25)):
        pq.write_table(oracle.append_column("seconds", pa.array(np.full(oracle.num_rows, seconds))), path)
        with Client(backend.base_url, backend.add_user(name)) as client:
            client.submit("timed", path)
    seeding.seed(backend, at_noon())
    return backend


async def at_noon() -> None:
    """Before leaderboards are read, which the server keeps."""
    for number, row in enumerate(await Submission.all().order_by("submitted_at")):
        await Submission.filter(id=row.id).update(submitted_at=NOON + timedelta(minutes=number))


def run(server: ServerProcess, *arguments: str) -> None:
    done = server.run(*arguments)
    assert done.returncode == 0, done.stderr


async def choose(pilot: Pilot[None], task: str, heading: str = "task") -> None:
    """Put the cursor on a task of the list, or on another thing below ``heading``."""
    await shows(pilot, task)
    names = [line.split()[0] for line in text(pilot).splitlines() if line.strip()]
    first = names.index(heading) + 1
    await pilot.press("home", *["down"] * (names.index(task) - first))


async def enter(pilot: Pilot[None], challenge: str, places: str = "0 places") -> None:
    """Open the leaderboard of a challenge."""
    await pilot.press("l")
    await choose(pilot, challenge, "challenge")
    await pilot.press("enter")
    await shows(pilot, places)


async def test_a_leaderboard_with_what_is_self_reported(server: ServerProcess) -> None:
    async with signed_in(server, "Benchmarks", size=(132, 43)) as pilot:
        await choose(pilot, "timed")
        await pilot.press("enter")
        await shows(pilot, "speed (self-reported)", "cleo", "ben", "accepts submissions")
        await pilot.press("escape")
        await shows(pilot, "NO: no truth yet")


async def test_a_heading_lists_settings(server: ServerProcess) -> None:
    with Client(server.base_url, admin_token=server.admin_token) as admin:
        admin.admin_edit_challenge("timed", organisation="some-lab")
        async with signed_in(server, "Benchmarks", size=LARGE) as pilot:
            await choose(pilot, "timed")
            await pilot.press("enter")
            await shows(pilot, "organisation: some-lab")
        admin.admin_edit_challenge("timed", organisation=None)


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_how_benchmarks_look(server: ServerProcess, size: tuple[int, int]) -> None:
    async with signed_in(server, "Benchmarks", size=size, now=lambda: NOON) as pilot:
        await shows(pilot, "timed")
        await matches(pilot, f"benchmarks-{size[0]}")
        await pilot.press("l")
        await shows(pilot, "closes")
        await matches(pilot, f"challenges-{size[0]}")
        await pilot.press("l")
        await shows(pilot, "cleo", "2 to verify")
        await matches(pilot, f"to-verify-{size[0]}")
        await pilot.press("enter")
        await shows(pilot, "2 places")
        await matches(pilot, f"leaderboard-{size[0]}")
        await pilot.press("l")
        await shows(pilot, "2 submissions")
        await matches(pilot, f"submissions-{size[0]}")
        await pilot.press("l")
        await shows(pilot, "2 participants")
        await matches(pilot, f"roster-{size[0]}")


async def test_a_submission_is_disqualified_and_reinstated(server: ServerProcess, operator: Client) -> None:
    async with signed_in(server, "Benchmarks", now=lambda: NOON) as pilot:
        await choose(pilot, "timed")
        await pilot.press("enter")
        await shows(pilot, "cleo", "ben")
        await pilot.press("d")
        await shows(pilot, "Disqualify", "1 -> no rank  cleo", "2 -> 1  ben")
        await matches(pilot, "disqualify-80")
        await pilot.press("enter")
        await shows(pilot, "which is public: is needed")
        await types(pilot, "reason", "measured on two machines")
        await pilot.press("enter")
        await shows(pilot, "Disqualified: cleo", "1  ben")
        await pilot.press("l", "l")
        await shows(pilot, "left today", "cleo")
        await pilot.press("down", "enter")
        await shows(pilot, "ONLY cleo", "disqualified: measured")
        await pilot.press("d")
        await shows(pilot, "Reinstate", "no rank -> 1  cleo")
        await pilot.press("y")
        await shows(pilot, "Reinstated: cleo")
    assert [place.hub_username for place in operator.leaderboard("timed")] == ["cleo", "ben"]


@pytest.fixture(scope="module")
def course(server: ServerProcess) -> str:
    """A challenge for members, one of whom never came, and a team of two; nothing was submitted."""
    name = "spring-course"
    with Client(server.base_url, token="", admin_token=server.admin_token) as admin:
        admin.admin_new_challenge(name, "timed", access="members", team_size=2)
        admin.admin_add_members(name, ["a-student-who-never-came", "dora", "emil"])
    with Client(server.base_url, server.add_user("dora")) as dora:
        dora.new_team(name, "Die Quarks von Göttingen 2027")
        code = dora.invite_to_team(name).code
    with Client(server.base_url, server.add_user("emil")) as emil:
        emil.join(name, code)
    return name


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_how_teams_and_members_look(server: ServerProcess, course: str, size: tuple[int, int]) -> None:
    async def at_noon() -> None:
        await Team.all().update(created_at=NOON)

    seeding.seed(server, at_noon())
    async with signed_in(server, "Benchmarks", size=size, now=lambda: NOON) as pilot:
        await enter(pilot, course)
        await pilot.press("l", "l")
        await shows(pilot, "left today", "a-student", "captain", "3 participants")
        await matches(pilot, f"members-{size[0]}")
        await pilot.press("l")
        await shows(pilot, "dora, emil", "1 team")
        await matches(pilot, f"teams-{size[0]}")


async def test_a_member_is_removed(server: ServerProcess, course: str, operator: Client) -> None:
    async with signed_in(server, "Benchmarks") as pilot:
        await enter(pilot, course)
        await pilot.press("m")
        await shows(pilot, "on the list Participants")
        await pilot.press("l", "l")
        await shows(pilot, "3 participants")
        await pilot.press("m")
        await shows(pilot, "Remove a-student", "invitations to spring-course end")
        await pilot.press("n")
        assert len(operator.admin_members(course)) == 3
        await pilot.press("m", "y")
        await shows(pilot, "2 participants")
        assert {member.hub_username for member in operator.admin_members(course)} == {"dora", "emil"}


@pytest.fixture
def pair(server: ServerProcess, operator: Client, tmp_path: Path) -> Iterator[str]:
    """A challenge whose one team has a submission of each of its two members."""
    name = "team-pairs"
    operator.admin_new_challenge(name, "tracking", team_size=2, public_percent=50)
    code, path = "", tmp_path / "oracle.parquet"
    oracle = write_oracle(path)
    for user in ("fay", "gil"):
        # A team's file that was sent before would not count again.
        pq.write_table(oracle.replace_schema_metadata({"from": user}), path)
        with Client(server.base_url, server.add_user(user)) as client:
            if code:
                client.join(name, code)
            else:
                client.new_team(name, "Quarks")
                code = client.invite_to_team(name).code
            client.submit(name, path)
    yield name
    operator.admin_close_challenge(name)  # the results of the task wait for those of its challenges


async def test_a_team_is_dissolved(server: ServerProcess, pair: str, operator: Client) -> None:
    def ranked() -> list[tuple[str, str | None]]:
        return [(place.hub_username, place.team) for place in operator.leaderboard(pair)]

    async with signed_in(server, "Benchmarks", now=lambda: NOON) as pilot:
        await enter(pilot, pair, "1 place")
        await pilot.press("a")
        await shows(pilot, "on the list Teams")
        await pilot.press("l", "l", "l")
        await shows(pilot, "1 team")
        await pilot.press("m")
        await shows(pilot, "Remove from the team Quarks", "Submissions: fay 1, gil 1")
        await types(pilot, "user", "ann")
        await pilot.press("enter")
        await shows(pilot, "is not in this team")
        await types(pilot, "user", "Gil")
        await matches(pilot, "remove-from-team-80")
        await pilot.press("enter")
        await shows(pilot, "Removed from Quarks")
        assert ranked() == [("fay", "Quarks"), ("gil", None)]
        await pilot.press("a")
        await shows(pilot, "Dissolve the team Quarks", "Submissions: fay 1")
        await pilot.press("n")
        assert len(operator.teams(pair)) == 1
        await pilot.press("a", "y")
        await shows(pilot, "Dissolved: Quarks")
    assert ranked() == [("fay", None), ("gil", None)]


async def test_an_organiser_sees_the_challenge_alone(
    server: ServerProcess, course: str, operator: Client
) -> None:
    organiser = operator.admin_add_operator("otto", ["benchmarks"], challenge=course)
    async with console_on(server.base_url, organiser.token) as pilot:
        # It opens on them.
        await choose(pilot, course, "challenge")
        await pilot.press("enter")
        await shows(pilot, "0 places")
        await pilot.press("l", "l")
        await shows(pilot, "dora", "emil", "connected")
        assert "STALE" not in text(pilot)


async def test_a_challenge_is_closed_and_opened_again(
    server: ServerProcess, course: str, operator: Client
) -> None:
    async with signed_in(server, "Benchmarks") as pilot:
        await pilot.press("l")
        await choose(pilot, course, "challenge")
        await pilot.press("x", "y")
        await shows(pilot, f"{course} is closed")
        await pilot.press("x")
        await shows(pilot, f"Open {course} again", "withheld")
        await pilot.press("y")
        await shows(pilot, f"{course} is open again")
    assert operator.challenge(course).state == "open"


async def test_verifying_says_what_it_may_pay(server: ServerProcess, operator: Client) -> None:
    async with signed_in(server, "Benchmarks") as pilot:
        await pilot.press("l", "l")
        await shows(pilot, "cleo", "ben")
        await pilot.press("v")
        await shows(pilot, "Verify", "of cleo", "speed", "credits if it is the best")
        await pilot.press("n")
        assert len(operator.admin_submissions(unverified=True)) == 2
        await pilot.press("v")
        await shows(pilot, "of cleo")
        await pilot.press("y")
        await shows(pilot, "Verified: cleo earned 50")
        (left,) = operator.admin_submissions(unverified=True)
        assert left.hub_username == "ben"


async def models() -> None:
    """One that runs on another machine, and one that failed."""
    of = {
        **dict.fromkeys(("manifest", "scorer_version", "truth_version"), "1"),
        "participant": "account:1",
        "task": "tracking",
        "challenge": "tracking",
        "account_id": 1,
        "size_bytes": 1,
        "events": 10,
        "received_at": NOON,
    }
    await Evaluation.create(
        **of,
        id="a" * 32,
        hub_username="ben",
        sha256="a" * 64,
        state="running",
        turn=0,
        events_done=5,
        lease="1",
        due_at=NOON + timedelta(days=9999),
        machine="node-7",
    )
    failed = {"state": "failed", "code": "memory", "machine": "node-8", "ended_at": NOON}
    await Evaluation.create(**of, **failed, id="b" * 32, hub_username="cleo", sha256="b" * 64)


async def no_models() -> None:
    """The end of a challenge would wait for one that is run again."""
    await Evaluation.all().delete()
    await Arrival.all().delete()


async def test_models_are_cancelled_and_run_again(server: ServerProcess, operator: Client) -> None:
    seeding.seed(server, models())
    async with signed_in(server, "Benchmarks", now=lambda: NOON + timedelta(hours=2)) as pilot:
        await pilot.press("l", "l", "l")
        await shows(pilot, "running 50%", "2 models")
        await matches(pilot, "models-80")
        await pilot.press("x")
        await shows(pilot, "There is nothing", "failed: memory")
        await pilot.press("a")
        await shows(pilot, "Run the model", "Of cleo, to tracking")
        await pilot.press("y")
        await shows(pilot, "The model of cleo is received")
        await pilot.press("down", "x")
        await shows(pilot, "Cancel the model", "Of ben")
        await pilot.press("y")
        await shows(pilot, "The model of ben is cancelled")
    assert {run.state for run in operator.admin_evaluations(user="ben")} <= {"cancelled"}
    seeding.seed(server, no_models())


async def test_a_challenge_is_closed_for_good(server: ServerProcess, operator: Client) -> None:
    async with signed_in(server, "Benchmarks") as pilot:
        await choose(pilot, "tracking")
        await pilot.press("x")
        await shows(pilot, "Close tracking", "cannot be opened again")
        await pilot.press("enter")
        assert operator.task("tracking").phase == "public", "Enter alone closes nothing"
        await pilot.press("x", "y")
        await shows(pilot, "tracking is closed")
    eventually(lambda: operator.task("tracking").phase == "final")
    audit = {(line.action, line.target) for line in operator.admin_audit(limit=9)}
    assert ("close_challenge", "tracking") in audit


async def test_files_that_a_challenge_waits_for_are_shown(server: ServerProcess) -> None:
    seeding.seed(server, waiting())
    try:
        async with signed_in(server, "Overview", size=(132, 43)) as pilot:
            await shows(pilot, "no longer tried: 1 file that cannot be scored again")
            await show(pilot, "Benchmarks")
            await choose(pilot, "timed")
            await pilot.press("enter")
            await shows(pilot, "waiting: 1 file: its file is not in", "no longer tried")
    finally:
        seeding.seed(server, no_waiting())


async def waiting() -> None:
    row = await Submission.filter(challenge="timed").first()
    assert row is not None
    await WaitingFile.create(
        challenge="timed",
        submission_id=row.id,
        scorer_version="2",
        truth_version=row.truth_version,
        reason="its file is not in the storage",
        since=NOON,
        attempts=30,
        retry_at=NOON + timedelta(days=1),
    )


async def no_waiting() -> None:
    await WaitingFile.all().delete()


async def test_a_split_names_the_boards_that_it_closes(server: ServerProcess, operator: Client) -> None:
    operator.admin_new_challenge("timed-2027", "timed")
    try:
        async with signed_in(server, "Benchmarks", size=(132, 43)) as pilot:
            await choose(pilot, "timed")
            await pilot.press("enter")
            await shows(pilot, "cleo")
            await pilot.press("h")
            await types(pilot, "percent", "50")
            await pilot.press("enter")
            await shows(pilot, "With 50 per cent public,", "timed-2027 will accept no", "closed by command")
            await pilot.press("escape")
        assert operator.task("timed").phase is None
    finally:
        operator.admin_close_challenge("timed-2027")


async def test_a_split_scores_again_after_its_preview(server: ServerProcess, operator: Client) -> None:
    async with signed_in(server, "Benchmarks") as pilot:
        await choose(pilot, "timed")
        await pilot.press("enter")
        await shows(pilot, "cleo")
        await pilot.press("question_mark")
        await shows(pilot, "Split: hold events back", "Score all again")  # without scrolling
        await pilot.press("escape")
        await holds(pilot, lambda: "Help" not in text(pilot).splitlines()[0])
        await pilot.press("h")
        await shows(pilot, "Split the events of timed")
        await types(pilot, "percent", "100")
        await pilot.press("enter")
        await shows(pilot, "must be a number from 1 to 99")
        await types(pilot, "percent", "50")
        await pilot.press("enter")
        await shows(pilot, "Scores are those on 50 per cent of the events", "cannot be undone")
        await shows(pilot, "Warning: participants have seen scores of 2 submissions")
        assert operator.task("timed").phase is None
        await pilot.press("y")
        await shows(pilot, "Done: scores are those on", "ranks changed")
        assert operator.task("timed").phase == "public"
        await holds(pilot, lambda: "Done" not in text(pilot))
        await pilot.press("h")
        await types(pilot, "percent", "50")
        await pilot.press("enter")
        await shows(pilot, "last error")
        await pilot.press("o")
        await shows(pilot, "Rescore timed", "no rank changes")
        await pilot.press("y")
        await shows(pilot, "Done: 0 ranks changed")
        await holds(pilot, lambda: "last error" not in text(pilot))
    actions = [entry.action for entry in operator.admin_audit(limit=2).items]
    assert actions == ["rescore", "split"]
