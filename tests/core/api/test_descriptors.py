"""A server that can open no more files and connections: it says so by 503, in few lines of its log."""

from __future__ import annotations

import json
import re
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
from tests.waiting import eventually

from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, calling, ok, parquet, signed_in

NOTE = "/hub/datasets/alice/data/resolve/main/note"
#: Pages, datasets (a connection to the hub), templates and style sheets of the hub, files.
READS = (
    "/",
    "/docs",
    "/web/sign-in",
    "/v1/datasets",
    "/hub/oauth/authorize",
    "/hub/oauth/pages.css",
    NOTE,
)


@contextmanager
def descriptors_used_up(server: ServerProcess) -> Iterator[None]:
    """Connect until the server has no file descriptor left; some connections wait to be accepted."""
    used = Path(f"/proc/{server.pid}/fd")
    before = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    limit = len([*used.iterdir()]) + 8
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (limit, before[1]))
    address = urlsplit(server.base_url)
    with ExitStack() as connections:
        for _ in range(40):
            connections.enter_context(socket.create_connection((address.hostname, address.port)))
        eventually(lambda: len([*used.iterdir()]) == limit)
        yield
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, before)


def store_note(client: httpx.Client) -> None:
    ok(client.post("/hub/api/repos/create", json={"name": "data", "type": "dataset"}))
    change = {"key": "file", "value": {"path": "note", "content": "bm90ZQ==", "encoding": "base64"}}
    lines = [{"key": "header", "value": {"summary": "a note"}}, change]
    ok(client.post("/hub/api/datasets/alice/data/commit/main", content="\n".join(map(json.dumps, lines))))


def test_without_descriptors_the_server_is_unavailable(
    fresh_platform: ServerProcess, oracle: pa.Table
) -> None:
    sent = {"content": parquet(oracle), "headers": {"Content-Type": "application/vnd.apache.parquet"}}
    with signed_in(fresh_platform, "alice") as alice:
        store_note(alice)
        with descriptors_used_up(fresh_platform):
            for path in READS:
                refused = alice.get(path)
                assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10"), path
            for path in (SUBMIT, "/v1/benchmark/tracking/check"):
                refused = alice.post(path, **sent)
                assert (refused.status_code, refused.headers["Retry-After"]) == (503, "10"), path
    with calling(fresh_platform, Authorization=alice.headers["Authorization"]) as again:
        assert all(again.get(path).status_code < 500 for path in READS)
        assert again.post(SUBMIT, **sent).is_success
    log = fresh_platform.log()
    # Each request once: a file that cannot be opened was not a success before.
    assert re.findall(rf"GET {NOTE} (\d+)", log) == ["503", "200"]
    # asyncio's own: a thousand lines a second.
    assert 0 < log.count("socket.accept() out of system resource") < 4
    assert log.count("Too many open files") < 20
