"""Quotas, limits of concurrent submissions, and bans during an upload."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from threading import Event
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pytest
from tests.waiting import eventually

from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, files_below, name_of, ok, parquet, signed_in, slowly

CHECK = "/v1/benchmark/tracking/check"
QUOTA = "/v1/challenges/tracking/quota"
METRIC = "trackml_weighted_efficiency"


def better_and_better(oracle: pa.Table, steps: int) -> Iterator[bytes]:
    """Files of which each scores a little more than the one before."""
    order = np.random.default_rng(1).random(oracle.num_rows)
    for step in range(1, steps + 1):
        tracks = np.where(order > 0.5 + 0.5 * step / steps, -1, oracle["track_id"].to_numpy())
        yield parquet(oracle.set_column(2, "track_id", pa.array(tracks)))


def left(client: httpx.Client) -> int:
    """The submissions that an account has left today."""
    quota = client.get(QUOTA).json()
    assert datetime.fromisoformat(quota["resets_at"]).date() > datetime.now(UTC).date()
    return int(quota["submissions_left"])


def places(server: ServerProcess) -> int:
    answer = httpx.get(f"{server.base_url}/v1/leaderboard/tracking?all=true", trust_env=False)
    return len(answer.json())


@pytest.mark.parametrize("path", [SUBMIT, CHECK])
def test_a_ban_during_the_upload_rejects_the_file(
    platform: ServerProcess, alice: httpx.Client, operator: httpx.Client, oracle: pa.Table, path: str
) -> None:
    name, begun, go_on = name_of(alice), Event(), Event()
    stored = files_below(platform.data_dir / "storage" / "predictions")
    own = parquet(oracle.slice(0, oracle.num_rows - 1))  # which no one else has sent
    with ThreadPoolExecutor(1) as thread:
        call = thread.submit(alice.post, path, content=slowly(own, begun, go_on))
        assert begun.wait(30)
        eventually(lambda: bool(files_below(platform.data_dir / "uploads")))
        operator.post("/admin/ban", json={"hub_username": name, "banned": True})
        go_on.set()
        assert call.result().status_code == 403
    assert operator.get(f"/admin/accounts/{name}").json()["credits"] == 10
    assert operator.get("/admin/submissions", params={"user": name}).json() == []
    assert files_below(platform.data_dir / "storage" / "predictions") == stored


def test_submissions_per_day_are_limited(start_platform: StartServer, oracle: pa.Table) -> None:
    server = start_platform({"PLATFORM_SUBMISSIONS_PER_DAY": "3", "PLATFORM_EVALUATIONS_IN_FLIGHT": "8"})
    files = list(better_and_better(oracle, 8))
    with signed_in(server, "alice") as alice, ThreadPoolExecutor(8) as threads:
        assert left(alice) == 3
        first = alice.post(SUBMIT, content=files[0])
        assert left(alice) == 2
        assert alice.post(SUBMIT, content=files[0]).json()["deduplicated"] is True
        answers = [*threads.map(lambda file: alice.post(SUBMIT, content=file), files[1:]), first]
        assert sorted(answer.status_code for answer in answers) == [200] * 3 + [429] * 5
        refused = next(answer for answer in answers if answer.status_code == 429)
        seconds_left = 86_400 - datetime.now(UTC).timestamp() % 86_400
        assert abs(int(refused.headers["Retry-After"]) - seconds_left) < 60
        assert alice.post(CHECK, content=files[0]).status_code == 200
        assert alice.post(SUBMIT, content=files[0]).json()["deduplicated"] is True, "a retry is no submission"
        assert places(server) == 3
        assert left(alice) == 0
        earned = sum(answer.json()["credits_earned"] for answer in answers if answer.status_code == 200)
        assert alice.get("/v1/me").json()["credits"] == 10 + earned
    with signed_in(server, "bob") as bob:
        assert left(bob) == 3
        assert bob.post(SUBMIT, content=files[0]).status_code == 200
        assert bob.get("/v1/challenges/nothing/quota").status_code == 404


def test_tiny_steps_are_paid_only_so_often_a_day(start_platform: StartServer, oracle: pa.Table) -> None:
    server = start_platform({"PLATFORM_REWARDS_PER_DAY": "2"})
    with signed_in(server, "alice") as alice, signed_in(server, "bob") as bob:
        files = list(better_and_better(oracle, 6))
        for file in files[:5]:
            assert alice.post(SUBMIT, content=file).status_code == 200
        notes = [entry["note"] for entry in alice.get("/v1/me/transactions").json()]
        assert notes.count("tracking: best trackml_weighted_efficiency") == 2
        assert max(notes.count(note) for note in notes) == 2
        # What was not paid was raised all the same: what alice has reached is no best of bob's.
        assert bob.post(SUBMIT, content=files[4]).json()["credits_earned"] == 0
        assert bob.post(SUBMIT, content=files[5]).json()["credits_earned"] > 0
    assert server.run("ledger", "audit").returncode == 0


def test_only_a_gain_above_its_error_is_paid_if_set(start_platform: StartServer, oracle: pa.Table) -> None:
    server = start_platform({"PLATFORM_REWARD_SIGNIFICANCE": "3"})

    def without(client: httpx.Client, hits: int) -> Any:
        """Submit the oracle without its last hits."""
        tracks = oracle["track_id"].to_numpy().copy()
        tracks[len(tracks) - hits :] = -1
        return ok(client.post(SUBMIT, content=parquet(oracle.set_column(2, "track_id", pa.array(tracks)))))

    with signed_in(server, "alice") as alice, signed_in(server, "bob") as bob:
        first = without(alice, 2000)
        assert first["credits_earned"] > 0, "far above the floor"
        second = without(alice, 1990)
        assert second["scores"][METRIC] > first["scores"][METRIC]
        assert second["credits_earned"] == 0, "the gain is all in one event: who knows what others would show"
        again = without(bob, 1990)
        assert again["scores"] == second["scores"]
        assert again["credits_earned"] == 0
        board = alice.get("/v1/leaderboard/tracking?all=true").json()
        leading = [second["submission_id"], again["submission_id"]]
        assert [place["submission_id"] for place in board[:2]] == leading
    assert server.run("ledger", "audit").returncode == 0


def test_concurrent_submissions_of_an_account_are_limited(
    platform: ServerProcess, alice: httpx.Client, oracle: pa.Table
) -> None:
    content, go_on = parquet(oracle), Event()
    uploads = platform.data_dir / "uploads"
    with signed_in(platform, "bob-in-time") as bob, ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(4))
        stack.callback(go_on.set)
        calls = []
        for path in (SUBMIT, SUBMIT, CHECK, CHECK):
            begun = Event()
            calls.append(threads.submit(alice.post, path, content=slowly(content, begun, go_on)))
            assert begun.wait(30)
        eventually(lambda: len(files_below(uploads)) == 4)
        for path in (SUBMIT, CHECK):
            refused = alice.post(path, content=content)
            assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
        assert len(files_below(uploads)) == 4
        assert bob.post(CHECK, content=content).status_code == 200
        go_on.set()
        assert [call.result().status_code for call in calls] == [200] * 4
        assert alice.post(CHECK, content=content).status_code == 200, "what has ended is not counted"


def test_scoring_that_takes_too_long_is_aborted(start_platform: StartServer, oracle: pa.Table) -> None:
    server = start_platform({"PLATFORM_EVALUATION_SECONDS": "0.001"})
    with signed_in(server, "alice") as alice:
        answer = alice.post(SUBMIT, content=parquet(oracle))
        assert answer.status_code == 503
        assert "0.001 s" in answer.json()["detail"]
        assert int(answer.headers["Retry-After"]) > 0
    assert places(server) == 0
    eventually(lambda: files_below(server.data_dir / "uploads") == [])


def with_junk(content: bytes, size: int) -> bytes:
    """The same predictions with bytes before the footer that no reader looks at."""
    footer = int.from_bytes(content[-8:-4], "little") + 8
    return content[:-footer] + bytes(size) + content[-footer:]


def test_a_file_larger_than_the_truth_allows_is_rejected(alice: httpx.Client, oracle: pa.Table) -> None:
    few = oracle.slice(0, 100)
    allowed = alice.get("/v1/benchmark/tracking").json()["largest_file_bytes"]
    for path in (SUBMIT, CHECK):
        assert alice.post(path, content=bytes(allowed + 1)).status_code == 413
        refused = alice.post(path, content=with_junk(parquet(few), 3_000_000))
        assert refused.status_code == 422, "more than its own rows need"
        assert refused.json()["errors"][0]["code"] == "too-large"
    assert alice.get("/v1/me/submissions").json() == []
    assert alice.post(SUBMIT, content=parquet(oracle, row_group_size=1)).status_code == 200
    assert alice.post(SUBMIT, content=parquet(few)).status_code == 200
