"""A course: accounts submit over the deadline while the server is killed; results are those of the files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import httpx
import numpy as np
import pyarrow as pa
from tests.counts import LONG
from tests.waiting import eventually

from collidium.testing.plugin import StartServer

from .conftest import parquet, signed_in

STUDENTS, FILES, KILLS = (30, 10, 2) if LONG else (6, 4, 1)
NAME = "course-2027"
METRIC = "trackml_weighted_efficiency"
#: From when a request is sent until it has been admitted.
MARGIN = timedelta(seconds=3)


def test_a_course_ends_with_the_ranks_of_its_files(start_platform: StartServer, oracle: pa.Table) -> None:
    server = start_platform(
        {
            "PLATFORM_DEADLINE_GRACE_SECONDS": "3",
            "PLATFORM_SUBMISSIONS_PER_DAY": "100",
            "PLATFORM_LEASE_SECONDS": "3",
        }
    )
    secret = {"X-Admin-Token": server.admin_token}
    students = [signed_in(server, f"student-{number}") for number in range(STUDENTS)]
    closes = datetime.now(UTC) + timedelta(seconds=0.3 * STUDENTS * FILES)
    body = {"name": NAME, "task": "tracking", "public_percent": 50, "closes_at": closes.isoformat()}
    address, port = server.base_url, httpx.URL(server.base_url).port or 0
    made = httpx.post(f"{address}/admin/challenges", json=body, headers=secret, trust_env=False)
    assert made.status_code == 201, made.text
    taken: list[str] = []

    def submit(number: int) -> None:
        student, quality = students[number % STUDENTS], number / STUDENTS / FILES
        # Good where others are bad: what is better on the public event is worse on the other.
        kept = np.where(oracle["event_id"].to_numpy() == 3, quality, 1 - quality)
        mask = np.random.default_rng(number).random(len(oracle)) < kept
        file = parquet(oracle.set_column(2, "track_id", pa.array(np.where(mask, oracle["track_id"], -1))))
        answer = None
        while answer is None:  # a killed server is started again
            began = datetime.now(UTC)
            with suppress(httpx.TransportError):
                answer = student.post(f"/v1/challenges/{NAME}/submit", content=file)
        is_late = answer.status_code == 409 and began > closes - MARGIN
        assert is_late or answer.status_code == 200, answer.text
        if answer.is_success:
            taken.append(answer.json()["submission_id"])

    order = np.random.default_rng(1).permutation(STUDENTS * FILES)
    with ThreadPoolExecutor(8) as threads:
        sent = [threads.submit(submit, int(number)) for number in order]
        for kill in range(KILLS):
            eventually(
                lambda kill=kill: sum(one.done() for one in sent) > len(sent) * (kill + 1) / (KILLS + 2)
            )
            server.kill()
            server.start(port=port)
        for one in sent:
            one.result()
    with httpx.Client(base_url=server.base_url, trust_env=False, timeout=60) as anybody:
        eventually(lambda: anybody.get(f"/v1/challenges/{NAME}").json()["results_at"] is not None)
        places = anybody.get(f"/v1/challenges/{NAME}/leaderboard", params={"limit": 1000}).json()
        every = [anybody.get(f"/v1/submissions/{id_}").json() for id_ in set(taken)]
    # By hand: each one's two best by the public part, and of these the better one by the final part.
    final: dict[str, float] = {}
    for name in {one["hub_username"] for one in every}:
        own = [one for one in every if one["hub_username"] == name]
        by_public = sorted(
            own, key=lambda one: (-one["earlier_scores"][0]["scores"][METRIC], one["submitted_at"])
        )
        final[name] = max(one["scores"][METRIC] for one in by_public[:2])
    assert {place["hub_username"]: place["scores"][METRIC] for place in places} == final
    assert [place["rank"] for place in places] == [
        1 + sum(other > place["scores"][METRIC] for other in final.values()) for place in places
    ]
    assert server.run("ledger", "audit").returncode == 0
    for student in students:
        student.close()
