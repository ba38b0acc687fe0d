"""The hub within the platform's server: its slow calls block no other request."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from collidium.testing.server import ServerProcess

FILES = 20_000


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[ServerProcess]:
    # Every call asks the hub who calls.
    with ServerProcess(tmp_path, env={"PLATFORM_IDENTITY_CACHE_SECONDS": "0"}) as server:
        yield server


def test_large_commits_delay_no_other_request(platform: ServerProcess) -> None:
    headers = {"Authorization": f"Bearer {platform.add_user('ada')}"}
    missing = {"key": "deletedFile", "value": {"path": "none"}}
    with (
        httpx.Client(base_url=platform.base_url, headers=headers, trust_env=False, timeout=300) as client,
        ThreadPoolExecutor() as threads,
    ):
        assert client.post("/hub/api/repos/create", json={"name": "finder"}).status_code == 200
        client.get("/v1/me")
        commits = [
            threads.submit(client.post, "/hub/api/models/ada/finder/commit/main", content=lines(missing))
            for _ in range(7)
        ]
        answers = []
        while not all(commit.done() for commit in commits):
            answers.append(client.get("/v1/me").status_code)
    assert [commit.result().status_code for commit in commits] == [404] * 7
    # A hub that keeps its callers waiting past the identity provider's patience makes this 503.
    assert set(answers) == {200}
    assert not [path for path in (platform.data_dir / "hub" / "blobs").glob("*/*") if path.is_file()]


def lines(last: object) -> bytes:
    """A commit of many small files, all new, that ends with something."""
    changes: list[object] = [{"key": "header", "value": {"summary": "many"}}]
    for number in range(FILES):
        content = base64.b64encode(os.urandom(12)).decode()
        changes.append({"key": "file", "value": {"path": f"d{number % 9}/f{number}", "content": content}})
    return "\n".join(map(json.dumps, [*changes, last])).encode()
