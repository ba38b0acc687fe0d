"""Progress of requests by server-sent events, until the request or the server ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx

from collidium.runtime import watching
from collidium.testing.server import ServerProcess

#: Jobs take some seconds.
PLATFORM = {"PLATFORM_MOCK_SECONDS": "3"}


def ordered(client: httpx.Client, seed: int) -> str:
    body = {"channel": "single_muon", "events": 10, "pileup": 0, "seed": seed}
    return f"/v1/requests/{client.post('/v1/simulate', json=body).json()['request_id']}/progress"


def events(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    lines = (line for line in answer.iter_lines() if line.startswith("data: "))
    yield from (json.loads(line.removeprefix("data: ")) for line in lines)


def test_a_stream_shows_progress_until_the_end(alice: httpx.Client) -> None:
    path = ordered(alice, 1)
    with alice.stream("GET", path) as answer:
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        seen = list(events(answer))
    assert [seen[0]["state"], seen[-1]["state"]] == ["queued", "completed"]
    done = [one["progress"]["fraction"] for one in seen if one["progress"]]
    assert len(done) > 1
    assert done == sorted(done)
    assert alice.get(path.replace("/progress", "")).json()["progress"] is None
    assert alice.get(f"/v1/requests/{'0' * 32}/progress").status_code == 404


def test_streams_of_an_account_are_limited(alice: httpx.Client) -> None:
    path = ordered(alice, 2)
    with ExitStack() as stack:
        streams = [events(stack.enter_context(alice.stream("GET", path))) for _ in range(watching.STREAMS)]
        assert all(next(stream) for stream in streams)
        refused = alice.get(path)
    assert refused.status_code == 429
    assert refused.headers["Retry-After"]


def test_streams_end_with_the_server(platform: ServerProcess, alice: httpx.Client) -> None:
    with alice.stream("GET", ordered(alice, 3)) as answer:
        shown = events(answer)
        assert next(shown)["state"] in {"queued", "running"}
        platform.stop()
        assert all(one["state"] != "completed" for one in shown)
