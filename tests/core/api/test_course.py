"""A course: accounts submit until after the deadline while the server is killed; results match the files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
from tests.counts import LONG
from tests.waiting import eventually

from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess, run_command

from .conftest import calling, ok, operating, parquet

STUDENTS, FILES, KILLS = (30, 10, 2) if LONG else (6, 4, 1)
NAME = "course-2027"
METRIC = "trackml_weighted_efficiency"
#: From when a request is sent until it has been admitted.
MARGIN = timedelta(seconds=3)


def enrol(server: ServerProcess) -> list[httpx.Client]:
    """Students from a CSV file, who have each used their link."""
    roster = ["name,display name", *(f"student-{number},学生 {number}" for number in range(STUDENTS))]
    (server.directory / "students.csv").write_text("\n".join(roster), encoding="utf-8")
    done = server.run("user", "add", "--csv", "students.csv")
    assert done.returncode == 0, done.stderr
    students = []
    for row in csv.DictReader(io.StringIO(done.stdout)):
        path, _, secret = row["link"].partition("/hub/")[2].partition("?link=")
        welcome = httpx.post(
            f"{server.base_url}/hub/{path}",
            data={"link": secret},
            headers={"Origin": server.base_url},
            trust_env=False,
        )
        token = welcome.text.partition('<pre id="token">')[2].partition("<")[0]
        students.append(calling(server, Authorization=f"Bearer {token}"))
    return students


def exported(server: ServerProcess) -> list[tuple[int, str, float]]:
    """Rank, account and score of the file of results."""
    environment = server.environment | {"PLATFORM_BACKEND": server.base_url}
    done = run_command(("challenge", "export", NAME), environment, server.directory)
    assert done.returncode == 0, done.stderr
    rows = csv.DictReader(io.StringIO(done.stdout))
    return [(int(row["rank"]), row["account"], float(row[METRIC])) for row in rows]


def has_done(sent: Sequence[Future[None]], count: float) -> bool:
    return sum(one.done() for one in sent) > count


def ranked(final: Mapping[str, float]) -> list[tuple[int, str, float]]:
    return sorted(
        (1 + sum(other > score for other in final.values()), name, score) for name, score in final.items()
    )


def test_a_course_ends_with_the_ranks_of_its_files(start_platform: StartServer, oracle: pa.Table) -> None:
    server = start_platform(
        {
            "PLATFORM_DEADLINE_GRACE_SECONDS": "3",
            "PLATFORM_SUBMISSIONS_PER_DAY": "100",
            "PLATFORM_LEASE_SECONDS": "3",
        }
    )
    students = enrol(server)
    body = {"name": NAME, "task": "tracking", "public_percent": 50}
    port = httpx.URL(server.base_url).port or 0
    with operating(server) as admin:
        ok(admin.post("/admin/challenges", json=body), 201)
    order = [int(number) for number in np.random.default_rng(1).permutation(STUDENTS * FILES)]
    late, closes = set(order[-STUDENTS:]), Future[datetime]()
    taken: list[str] = []

    def submit(number: int) -> None:
        student, quality = students[number % STUDENTS], number / STUDENTS / FILES
        # Good where others are bad: what is better on the public event is worse on the other.
        kept = np.where(oracle["event_id"].to_numpy() == 3, quality, 1 - quality)
        mask = np.random.default_rng(number).random(len(oracle)) < kept
        file = parquet(oracle.set_column(2, "track_id", pa.array(np.where(mask, oracle["track_id"], -1))))
        if number in late:
            closed = closes.result()
            eventually(lambda: datetime.now(UTC) > closed)
        answer, began = None, datetime.now(UTC)
        while answer is None:  # a killed server is started again
            began = datetime.now(UTC)
            with suppress(httpx.TransportError):
                answer = student.post(f"/v1/challenges/{NAME}/submit", content=file)
        assert answer.status_code in {200, 409}, answer.text
        if answer.status_code == 409:
            assert began > closes.result() - MARGIN, answer.text
        assert answer.status_code == 409 or number not in late, answer.text
        if answer.is_success:
            taken.append(answer.json()["submission_id"])

    with ThreadPoolExecutor(8) as threads:
        sent = [threads.submit(submit, number) for number in order]
        for kill in range(KILLS):
            part = len(sent) * (kill + 1) / (KILLS + 2)
            eventually(partial(has_done, sent, part))
            server.kill()
            server.start(port=port)
        body = {"closes_at": (datetime.now(UTC) + timedelta(seconds=1)).isoformat()}
        with operating(server) as admin:
            edited = ok(admin.patch(f"/admin/challenges/{NAME}", json=body))
        closes.set_result(datetime.fromisoformat(edited["closes_at"]))
        for one in sent:
            one.result()
    with operating(server) as admin:
        eventually(lambda: admin.get(f"/v1/challenges/{NAME}").json()["results_at"] is not None)
        every = [admin.get(f"/v1/submissions/{id_}").json() for id_ in set(taken)]
        # By hand: each one's two best by the public part, and of these the better one by the final part.
        counted: dict[str, list[dict[str, Any]]] = {}
        for one in sorted(
            every, key=lambda one: (-one["earlier_scores"][0]["scores"][METRIC], one["submitted_at"])
        ):
            counted.setdefault(one["hub_username"], []).append(one)
        scores = {
            name: sorted(((one["scores"][METRIC], one["submission_id"]) for one in own[:2]), reverse=True)
            for name, own in counted.items()
        }
        final = {name: own[0][0] for name, own in scores.items()}
        assert sorted(exported(server)) == ranked(final)
        # What remains of the winner's is their other final submission.
        _, winner, _ = ranked(final)[0]
        (_, best), (final[winner], _) = scores[winner]
        ok(admin.post(f"/admin/challenges/{NAME}/submissions/{best}/disqualify", json={"reason": "copied"}))
    assert sorted(exported(server)) == ranked(final)
    assert server.run("ledger", "audit").returncode == 0
    for student in students:
        student.close()
