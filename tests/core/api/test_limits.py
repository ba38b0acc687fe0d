"""Limits of sizes, and kills and restarts of a server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import pyarrow as pa
from tests.counts import LONG
from tests.waiting import eventually

from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, calling, credits_of, files_below, ok, parquet, signed_in


def chunks(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), 10_000):
        yield content[start : start + 10_000]


def test_a_body_past_the_limit_is_413_and_leaves_nothing(
    start_platform: StartServer, oracle: pa.Table
) -> None:
    server = start_platform({"PLATFORM_MAX_SUBMISSION_BYTES": "20000"})
    with signed_in(server, "alice") as client:
        content = parquet(oracle) * 20
        for sent in (content, chunks(content)):
            answer = client.post(SUBMIT, content=sent)
            assert answer.status_code == 413
            assert "20000" in answer.json()["detail"].replace(",", "")
            assert client.get("/v1/me").status_code == 200
        assert files_below(server.data_dir / "uploads") == []
        headers = {"X-Admin-Token": server.admin_token, "Content-Type": "application/json"}
        assert client.post("/admin/grant", content=b" " * 2_000_000, headers=headers).status_code == 413


def test_a_kill_while_scoring_leaves_no_submission(fresh_platform: ServerProcess, oracle: pa.Table) -> None:
    token, content = f"Bearer {fresh_platform.add_user('alice')}", parquet(oracle)
    for moment in (0.0, 0.02, 0.05, 0.1, 0.3) if LONG else (0.0, 0.05, 0.3):
        with calling(fresh_platform, Authorization=token) as alice, ThreadPoolExecutor(1) as thread:
            call = thread.submit(alice.post, SUBMIT, content=content)
            wait([call], timeout=moment)
            fresh_platform.kill()
            call.exception()
        fresh_platform.start()
        assert files_below(fresh_platform.data_dir / "uploads") == []
        with calling(fresh_platform, Authorization=token) as alice:
            places = alice.get("/v1/leaderboard/tracking").json()
            assert (len(places), credits_of(alice)) in {(0, 10), (1, 110)}
        assert fresh_platform.run("ledger", "audit").returncode == 0
    with calling(fresh_platform, Authorization=token) as alice:
        ok(alice.post(SUBMIT, content=content))
        assert credits_of(alice) == 110


def test_a_stop_lets_a_submission_in_flight_finish(fresh_platform: ServerProcess, oracle: pa.Table) -> None:
    with signed_in(fresh_platform, "alice") as alice, ThreadPoolExecutor(1) as thread:
        call = thread.submit(alice.post, SUBMIT, content=parquet(oracle))
        eventually(lambda: bool(files_below(fresh_platform.data_dir / "uploads")))
        assert fresh_platform.stop() == 0
    assert call.result().status_code == 200
