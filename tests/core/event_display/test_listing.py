"""The list of datasets with a fast, slow or unreachable hub."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import suppress
from math import inf
from pathlib import Path
from threading import enumerate as enumerate_threads

import pytest
from tests.counts import LONG
from tests.killing import Killer
from tests.waiting import until

from collidium import plugins
from collidium.datasets import sample
from collidium.errors import Unavailable
from collidium.event_display import SAMPLE, EventDisplay, HashesOf, StoredEvent, Wanted, display
from collidium.settings import load

REPO = "ada/events"
SHARD = "data/ttbar_pu9_tracks/train-00000-of-00001.parquet"
FILE = {"type": "file", "path": SHARD, "size": 9, "oid": "a" * 40}
ANSWERS = {
    "/api/datasets?": [{"id": REPO}],
    f"/api/datasets/{REPO}/revision/main": {"sha": "b" * 40, "tags": ["collidium"]},
    f"/api/datasets/{REPO}/tree/": [FILE],
}


class Hub:
    """A hub with one dataset; sends a byte in a while from the byte on that is set."""

    def __init__(self) -> None:
        self.url = ""
        self.drips_from: int | None = None
        self.serving = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving += 1
        with suppress(ConnectionError):
            target = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
            found = [json.dumps(answer) for path, answer in ANSWERS.items() if target.startswith(path)]
            status, body = ("200 OK", found[0]) if found else ("404 Not Found", "")
            head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close"
            answer = f"{head}\r\n\r\n{body}".encode()
            quick = len(answer) if self.drips_from is None else self.drips_from
            writer.write(answer[:quick])
            for byte in answer[quick:]:
                await writer.drain()
                await asyncio.sleep(0.5)  # the slowness that is tested
                writer.write(bytes([byte]))
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        self.serving -= 1


@pytest.fixture
async def hub() -> AsyncIterator[Hub]:
    hub = Hub()
    server = await asyncio.start_server(hub.serve, "127.0.0.1", 0)
    hub.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    yield hub
    server.close()
    await until(lambda: not hub.serving)


async def never(_: StoredEvent, __: HashesOf) -> bool:
    """As if no task were scored."""
    return False


@pytest.fixture
async def shown(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EventDisplay]:
    """What is shown of the hub, by a server that asks for each list."""
    monkeypatch.setattr(display, "KEPT_SECONDS", 0)
    settings = load(data_dir=tmp_path, hub_url=hub.url)
    executor = plugins.load(()).executors(settings).get(settings.executor)
    shown = EventDisplay(settings, executor)
    yield shown
    await shown.close()
    await executor.close()


@pytest.mark.parametrize("drips_from", [0, 60], ids=["head", "body"])
async def test_a_hub_that_drips_leaves_the_last_list(
    hub: Hub, shown: EventDisplay, monkeypatch: pytest.MonkeyPatch, drips_from: int
) -> None:
    async with asyncio.timeout(30):
        fresh = await shown.datasets()
        hub.drips_from = drips_from
        monkeypatch.setattr(display, "_LIST_SECONDS", 1.0)
        old = await shown.datasets()
    assert [entry.repo for entry in fresh.entries] == [SAMPLE, SAMPLE, REPO]
    assert (fresh.stale, fresh.warning) == (False, "")
    assert old.entries == fresh.entries
    assert "s old" in old.warning
    # The thread that asked has ended, too.
    await until(lambda: not [thread for thread in enumerate_threads() if "event-display" in thread.name], 5)


async def test_the_sample_is_listed_without_a_hub(
    hub: Hub, shown: EventDisplay, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.drips_from = 0
    monkeypatch.setattr(display, "_LIST_SECONDS", 1.0)
    async with asyncio.timeout(30):
        listed = await shown.datasets()
        assert [entry.repo for entry in listed.entries] == [SAMPLE, SAMPLE]
        assert "only the built-in sample" in listed.warning
        with pytest.raises(Unavailable, match="does not list"):
            await shown.event(Wanted("ttbar_pu9", 1), never)


@pytest.mark.parametrize("_", range(20 if LONG else 1))
async def test_a_killed_worker_makes_no_dataset_unusable(shown: EventDisplay, _: int) -> None:
    wanted = Wanted(sample.CONFIG, 0, SAMPLE)
    with Killer(os.getpid()) as killer:
        assert await shown.event(wanted, never)
        await until(lambda: len(killer.killed) == 1)


async def test_workers_killed_for_ever_show_no_event_yet(shown: EventDisplay) -> None:
    wanted = Wanted(sample.CONFIG, 0, SAMPLE)
    with Killer(os.getpid(), inf), pytest.raises(Unavailable, match="interrupted"):
        await shown.event(wanted, never)
    assert await shown.event(wanted, never)
