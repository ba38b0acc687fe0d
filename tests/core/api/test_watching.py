"""Requests watched by server-sent events: how far they are, until they or the server end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from tests.waiting import eventually

from collidium.runtime import watching
from collidium.testing.databases import Databases
from collidium.testing.server import ServerProcess

from .conftest import signed_in


@pytest.fixture(scope="module")
def server(_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose jobs take some seconds."""
    env = {"PLATFORM_MOCK_SECONDS": "3"}
    with _databases.migrated() as url, ServerProcess(tmp_path_factory.mktemp("seen"), url, env) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    with signed_in(server, "watcher") as client:
        yield client


def ordered(client: httpx.Client, seed: int) -> str:
    body = {"channel": "single_muon", "events": 10, "pileup": 0, "seed": seed}
    return f"/v1/requests/{client.post('/v1/simulate', json=body).json()['request_id']}/progress"


def events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    lines = (line for line in answer.iter_lines() if line.startswith("data: "))
    yield from (json.loads(line.removeprefix("data: ")) for line in lines)


def test_a_stream_shows_progress_until_the_end(client: httpx.Client) -> None:
    path = ordered(client, 1)
    with client.stream("GET", path) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        seen = list(events(answer))
    assert [seen[0]["state"], seen[-1]["state"]] == ["queued", "completed"]
    done = [one["progress"]["fraction"] for one in seen if one["progress"]]
    assert len(done) > 1
    assert done == sorted(done)
    assert client.get(path.replace("/progress", "")).json()["progress"] is None
    assert client.get(f"/v1/requests/{'0' * 32}/progress").status_code == 404


def test_an_account_has_a_few_streams(client: httpx.Client) -> None:
    path = ordered(client, 2)
    with ExitStack() as stack:
        streams = [events(stack.enter_context(client.stream("GET", path))) for _ in range(watching.STREAMS)]
        assert all(next(stream) for stream in streams)
        refused = client.get(path)
    assert refused.status_code == 429
    assert refused.headers["Retry-After"]


def test_streams_end_with_the_server(server: ServerProcess, client: httpx.Client) -> None:
    path = ordered(client, 3)
    with ExitStack() as stack:
        answers: list[httpx.Response] = []

        def is_open() -> bool:  # once the server has seen that those of the test before have ended
            answers.append(stack.enter_context(client.stream("GET", path)))
            return answers[-1].status_code == 200

        eventually(is_open)
        shown = events(answers[-1])
        assert next(shown)["state"] in {"queued", "running"}
        server.stop()
        assert all(one["state"] != "completed" for one in shown)
