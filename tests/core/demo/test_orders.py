"""The demo notices when its orders do not end as they should."""

from __future__ import annotations

from pathlib import Path

import pytest

from collidium.demo.orders import MOCK, order_events
from collidium.errors import CollidiumError
from collidium.testing.server import ServerProcess


def test_a_request_that_fails_ends_the_demo(tmp_path: Path) -> None:
    told: list[str] = []
    env = {"PLATFORM_MOCK_OUTCOME": "failed", "PLATFORM_MOCK_SECONDS": "0.2"}
    with ServerProcess(tmp_path, env=env) as server:
        tokens = {name: server.add_user(name) for name in ("alice", "collidium")}
        with pytest.raises(CollidiumError, match="is failed, not completed: the mock runner is set to fail"):
            order_events(server.base_url, tokens, told.append, MOCK)
    assert told[-1].endswith("is failed")


def test_the_same_order_must_be_answered_by_the_first(tmp_path: Path) -> None:
    env = {"PLATFORM_DEDUP_DAYS": "0", "PLATFORM_MOCK_SECONDS": "0.2"}
    with ServerProcess(tmp_path, env=env) as server:
        tokens = {name: server.add_user(name) for name in ("alice", "collidium")}
        with pytest.raises(CollidiumError, match="was not answered by the first"):
            order_events(server.base_url, tokens, lambda _: None, MOCK)
