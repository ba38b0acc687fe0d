"""What many ask at once is called once, and kept as long and as much as its cache keeps."""

from __future__ import annotations

import asyncio

import pytest
from cachetools import LRUCache, TTLCache
from tests.waiting import until

from collidium.runtime.shared_calls import SharedCalls


class Service:
    """Counts its calls; answers when the gate is open."""

    def __init__(self) -> None:
        self.calls = 0
        self.cancelled = 0
        self.gate = asyncio.Event()
        self.error: Exception | None = None

    async def call(self) -> int:
        self.calls += 1
        number = self.calls
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        if self.error is not None:
            raise self.error
        return number


@pytest.fixture
async def service() -> Service:
    return Service()


async def test_callers_of_one_key_share_a_call(service: Service) -> None:
    calls: SharedCalls[str, int] = SharedCalls()
    waiting = [asyncio.create_task(calls.run(key, service.call)) for key in ("a", "a", "a", "b")]
    await until(lambda: service.calls == 2)
    assert len(calls) == 2
    assert "a" in calls
    waiting[0].cancel()
    service.gate.set()
    assert await asyncio.gather(*waiting[1:]) == [1, 1, 2]
    assert len(calls) == 0
    assert await calls.run("a", service.call) == 3


async def test_a_result_is_kept_for_its_time(service: Service) -> None:
    now = 100.0
    calls: SharedCalls[None, int] = SharedCalls(TTLCache(1, 5, lambda: now))
    service.gate.set()
    assert await asyncio.gather(*(calls.run(None, service.call) for _ in range(20))) == [1] * 20
    now += 4.9
    assert await calls.run(None, service.call) == 1
    now += 0.2
    assert await calls.run(None, service.call) == 2


async def test_a_result_that_is_too_large_is_not_kept(service: Service) -> None:
    calls: SharedCalls[None, int] = SharedCalls(LRUCache(1, getsizeof=lambda number: 3 - number))
    service.gate.set()
    assert [await calls.run(None, service.call) for _ in range(3)] == [1, 2, 2]


async def test_an_error_reaches_all_and_is_not_kept(service: Service) -> None:
    calls: SharedCalls[None, int] = SharedCalls(LRUCache(1))
    service.error = ValueError("away")
    service.gate.set()
    errors = await asyncio.gather(*(calls.run(None, service.call) for _ in range(3)), return_exceptions=True)
    assert errors == [service.error] * 3
    assert service.calls == 1
    service.error = None
    assert await calls.run(None, service.call) == 2


@pytest.mark.parametrize("finish", [False, True])
async def test_a_call_ends_with_its_last_caller(service: Service, finish: bool) -> None:
    """Unless it is to finish: then its result is kept for the next caller."""
    calls: SharedCalls[None, int] = SharedCalls(LRUCache(1), finish=finish)
    waiting = [asyncio.create_task(calls.run(None, service.call)) for _ in range(2)]
    await until(lambda: service.calls == 1)
    for caller in waiting:
        caller.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    service.gate.set()
    assert await calls.run(None, service.call) == (1 if finish else 2)
    assert service.cancelled == (0 if finish else 1)


async def test_closing_cancels_the_calls(service: Service) -> None:
    calls: SharedCalls[None, int] = SharedCalls(finish=True)
    caller = asyncio.create_task(calls.run(None, service.call))
    await until(lambda: service.calls == 1)
    await calls.close()
    assert service.cancelled == 1
    with pytest.raises(asyncio.CancelledError):
        await caller
