"""Look-ups while name servers are slow or away: bounded in threads, and fair among accounts."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.core.outbox.conftest import Post
from tests.waiting import until

from collidium import settings
from collidium.errors import InvalidInput, TooManyRequests, Unavailable
from collidium.outbox import require_reachable
from collidium.outbox.sending import Sender
from collidium.runtime.look_ups import MAXIMUM, LookUps

DEFAULTS = settings.load()


@dataclass
class NameServer:
    """The system's resolver: hosts in ``.slow.example`` wait for ``answers``, others are there at once."""

    asked: list[str] = field(default_factory=list)
    answers: threading.Event = field(default_factory=threading.Event)

    def getaddrinfo(self, host: str, port: int, **options: Any) -> Sequence[tuple[Any, ...]]:
        self.asked.append(host)
        if host.endswith(".slow.example"):
            self.answers.wait(20)
            raise socket.gaierror(socket.EAI_AGAIN, "no name server answers")
        address = "127.0.0.1" if host == "inside.example" else "8.8.8.8"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server.getaddrinfo)
    yield server
    server.answers.set()


def threads() -> int:
    return sum(thread.name == "collidium-look-up" for thread in threading.enumerate())


async def leave_soon(look_ups: LookUps, host: str, account_id: int | None) -> None:
    """Ask, and be gone before the answer; raises Unavailable."""
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await look_ups.look_up(host, 443, account_id)


async def test_threads_are_bounded_also_when_no_caller_waits(name_server: NameServer) -> None:
    look_ups = LookUps(maximum=4, seconds=0.05)
    await asyncio.gather(*(leave_soon(look_ups, f"h{n}.slow.example", n) for n in range(4)))
    for account_id in (None, *range(100, 120)):
        with pytest.raises(Unavailable) as refused:
            await look_ups.look_up(f"more{account_id}.slow.example", 443, account_id)
        assert "Retry-After" in refused.value.headers
    assert threads() == 4
    name_server.answers.set()
    await until(lambda: threads() == 0)
    assert await look_ups.look_up("quick.example", 443, 200) == ["8.8.8.8"]


async def test_black_holed_names_of_sixteen_accounts_block_no_other(name_server: NameServer) -> None:
    look_ups = LookUps()
    await asyncio.gather(*(leave_soon(look_ups, f"h{n}.slow.example", n) for n in range(1, 17)))
    assert threads() == 16
    await require_reachable("https://quick.example/", DEFAULTS, account_id=100, resolve=look_ups.look_up)


async def test_an_account_rests_after_a_slow_look_up(name_server: NameServer) -> None:
    """Nine times as long as it took: so no account holds a thread for more than a tenth of the time."""
    look_ups = LookUps(slow=0.1)
    await leave_soon(look_ups, "h.slow.example", 1)
    name_server.answers.set()
    await until(lambda: threads() == 0)
    with pytest.raises(TooManyRequests, match="were slow") as refused:
        await look_ups.look_up("quick.example", 443, 1)
    assert int(refused.value.headers["Retry-After"]) >= 2
    assert await look_ups.look_up("quick.example", 443, 2) == ["8.8.8.8"]
    assert await look_ups.look_up("quick.example", 443, 2) == ["8.8.8.8"]


async def test_one_account_has_one_look_up_and_delays_no_other(name_server: NameServer) -> None:
    look_ups = LookUps(maximum=4, seconds=0.05, slow=20)
    await leave_soon(look_ups, "h.slow.example", 1)
    for n in range(10):
        with pytest.raises(TooManyRequests):
            await look_ups.look_up(f"h{n}.slow.example", 443, 1)
    assert threads() == 1
    assert await look_ups.look_up("quick.example", 443, 2) == ["8.8.8.8"]
    name_server.answers.set()
    await until(lambda: threads() == 0)
    assert await look_ups.look_up("quick.example", 443, 1) == ["8.8.8.8"]


async def test_who_asks_for_much_at_once_waits_a_little(name_server: NameServer) -> None:
    look_ups = LookUps(maximum=2)
    hosts = [f"h{n}.example" for n in range(20)]
    found = await asyncio.gather(*(look_ups.look_up(host, 443, n % 3) for n, host in enumerate(hosts)))
    assert found == [["8.8.8.8"]] * 20
    assert sorted(name_server.asked) == sorted(hosts)


async def test_those_who_ask_for_one_host_at_once_share_the_answer(name_server: NameServer) -> None:
    look_ups = LookUps(seconds=0.05)
    asking = [asyncio.create_task(look_ups.look_up("h.slow.example", 443, n % 3)) for n in range(50)]
    await until(lambda: len(name_server.asked) == 1)
    asking[0].cancel()  # the others do not mind
    name_server.answers.set()
    answers = await asyncio.gather(*asking[1:], return_exceptions=True)
    assert {type(answer) for answer in answers} == {socket.gaierror}
    assert len(name_server.asked) == 1


@pytest.mark.parametrize(
    "spelling", ["127.1", "0x8080808", "2130706433", "010.1.2.3", "8.8.8.8", "2001:DB8:0::1"]
)
async def test_a_literal_address_is_parsed_as_the_resolver_does(spelling: str) -> None:
    (address, *_), *_ = (found[-1] for found in socket.getaddrinfo(spelling, 443))
    assert await LookUps(maximum=0).look_up(spelling, 443, 1) == [address]


async def test_where_the_system_has_no_more_threads_it_is_a_refusal(
    name_server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    look_ups = LookUps(maximum=1, seconds=0.05)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", no_more)
        with pytest.raises(Unavailable, match="threads"):
            await require_reachable("https://quick.example/", DEFAULTS, resolve=look_ups.look_up)
    await require_reachable("https://quick.example/", DEFAULTS, resolve=look_ups.look_up)


async def test_an_account_looks_up_one_url_at_a_time(
    name_server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collidium.outbox.webhooks.LOOK_UP_SECONDS", 0.2)
    resolve = LookUps(seconds=0.05).look_up
    with pytest.raises(InvalidInput, match="cannot be looked up now"):
        await require_reachable("https://h.slow.example/", DEFAULTS, account_id=1, resolve=resolve)
    with pytest.raises(TooManyRequests):
        await require_reachable("https://quick.example/", DEFAULTS, account_id=1, resolve=resolve)
    await require_reachable("https://quick.example/", DEFAULTS, account_id=2, resolve=resolve)


async def test_delivery_without_a_look_up_blames_no_receiver(post: Post, name_server: NameServer) -> None:
    look_ups = LookUps(seconds=0.05)
    await leave_soon(look_ups, "h.slow.example", 1)
    await post.register("https://quick.example/")
    await post.announce("r1", "r2")
    assert await post.deliver(look_ups.look_up) == 2, "the second was put off"
    assert [(delivery.state, delivery.last_error) for delivery in await post.log()] == [
        ("pending", "could not be tried now")
    ] * 2


async def test_black_holed_names_leave_look_ups_to_who_answered(name_server: NameServer) -> None:
    sender = Sender(DEFAULTS)

    async def send(host: str, account_id: int, *, answering: bool = False) -> str | None:
        outcome = await sender.send(
            f"https://{host}/",
            account_id,
            event_id="e",
            body="{}",
            secret="whsec_" + "A" * 32,
            moment=datetime.now(UTC),
            answering=answering,
        )
        return outcome.error

    waiting = [asyncio.create_task(send(f"h{n}.slow.example", n)) for n in range(1, MAXIMUM + 1)]
    await until(lambda: threads() == MAXIMUM)
    assert await send("inside.example", 100) == "could not be tried now"
    assert "not public" in str(await send("inside.example", 100, answering=True))
    name_server.answers.set()
    await asyncio.gather(*waiting)
