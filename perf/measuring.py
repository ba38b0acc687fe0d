"""What the measurements share: figures, the CPU time of a process, requests by turns with a plain server's.

CPU is what the kernel accounts to a process's threads. On a busy or slow machine everything costs more, so
each figure is compared with its control of the same turn: for requests a server that only answers hello, bare
Quart on Hypercorn in a process of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from collidium.testing.databases import PostgresDatabases
from collidium.testing.postgres import PostgresServer

CONNECTIONS = 8
#: Requests of a call in a turn.
COUNT = 200
TURNS = 5

HELLO = """
import asyncio, sys
from hypercorn.asyncio import serve
from hypercorn.config import Config
from quart import Quart

app = Quart("hello")

@app.get("/")
async def hello():
    return {"status": "ok"}

config = Config()
config.bind = [f"fd://{sys.argv[1]}"]
asyncio.run(serve(app, config))
"""


@dataclass(frozen=True)
class Figure:
    """A measurement: a value of each turn, and that of its control in the same turn, in the same unit."""

    name: str
    values: Sequence[float]
    control: Sequence[float]
    #: Of the last minute, when it was measured.
    load: float = field(default_factory=lambda: os.getloadavg()[0])


class Target(NamedTuple):
    """A server process."""

    base_url: str
    pid: int


#: The bytes of a request by its number.
Call = Callable[[int], bytes]


def cpu_seconds(pid: int) -> float:
    """Time that a process has run, in the kernel, too."""
    return time.clock_gettime(~pid << 3 | 2)  # the process's clock, which has threads that ended, too


def call(
    path: str, headers: Mapping[str, str] | None = None, body: Callable[[int], Any] | None = None
) -> Call:
    """A GET, or a POST of what ``body`` returns for the request's number, as JSON."""
    lines = [f"{'POST' if body else 'GET'} {path} HTTP/1.1", "Host: localhost"]
    head = "\r\n".join([*lines, *(f"{name}: {value}" for name, value in (headers or {}).items())])

    def message(number: int) -> bytes:
        content = json.dumps(body(number)).encode() if body else b""
        sizes = f"\r\nContent-Type: application/json\r\nContent-Length: {len(content)}" if body else ""
        return f"{head}{sizes}\r\n\r\n".encode() + content

    return message


def send(base_url: str, messages: Call, numbers: range, connections: int = CONNECTIONS) -> float:
    """Send the requests over kept-alive connections; the seconds they took together."""
    address = urlsplit(base_url)

    async def connection(mine: range) -> None:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        for number in mine:
            writer.write(messages(number))
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.split(b" ", 2)[1].startswith(b"2"), head
            length = head.lower().split(b"content-length:")[1].split(b"\r\n", 1)[0]
            await reader.readexactly(int(length))
        writer.close()
        await writer.wait_closed()

    async def all_of_them() -> None:
        await asyncio.gather(*(connection(numbers[first::connections]) for first in range(connections)))

    started = time.perf_counter()
    asyncio.run(all_of_them())
    return time.perf_counter() - started


def milliseconds(target: Target, messages: Call, numbers: range) -> float:
    """CPU of the server per request."""
    before = cpu_seconds(target.pid)
    send(target.base_url, messages, numbers)
    return (cpu_seconds(target.pid) - before) / len(numbers) * 1000


@contextmanager
def hello() -> Iterator[Target]:
    """The plain server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        fd = listener.fileno()
        process = subprocess.Popen(
            [sys.executable, "-c", HELLO, str(fd)], pass_fds=[fd], stderr=subprocess.DEVNULL
        )
        try:
            yield Target(f"http://127.0.0.1:{listener.getsockname()[1]}", process.pid)
        finally:
            process.terminate()
            process.wait()


def by_turns(server: Target, calls: Mapping[str, Call], quick: bool = False) -> Iterator[Figure]:
    """Milliseconds of CPU of each call, each after as many hellos; the first turn only warms up."""
    count, turns = (40, 1) if quick else (COUNT, TURNS)
    taken: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in calls}
    with hello() as plain:
        for turn in range(turns + 1):
            numbers = range(turn * count, (turn + 1) * count)
            for name, messages in calls.items():
                control = milliseconds(plain, call("/"), numbers)
                value = milliseconds(server, messages, numbers)
                if turn:
                    taken[name][0].append(value)
                    taken[name][1].append(control)
    for name, (values, controls) in taken.items():
        yield Figure(name, values, controls)


def on_both_databases(
    measure: Callable[[str, Path, str | None, bool], Iterator[Figure]], quick: bool
) -> Iterator[Figure]:
    """Figures of ``measure(kind, directory, database_url, quick)``, on SQLite and on PostgreSQL."""
    with tempfile.TemporaryDirectory() as directory:
        yield from measure("SQLite", Path(directory), None, quick)
    with (
        tempfile.TemporaryDirectory() as directory,
        PostgresServer() as postgres,
        PostgresDatabases(postgres).migrated() as url,
    ):
        yield from measure("PostgreSQL", Path(directory), url, quick)
