"""Request bodies against a real Hypercorn on loopback."""

import asyncio
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from tests.counts import LONG
from tests.waiting import until

from collidium.files.held import sweep
from collidium.testing.processes import ending_with_parent

MEBIBYTE = 1024 * 1024
#: Of large bodies, MiB: more than a process may take.
SIZE = 300 if LONG else 160
BLOCK = bytes(range(256)) * 4096


class BodyServer:
    """A process that serves body_server.py with one directory for received files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.process = subprocess.Popen(
            ending_with_parent(
                [sys.executable, str(Path(__file__).with_name("body_server.py")), str(directory)]
            ),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def end(self, number: int = signal.SIGTERM) -> None:
        self.process.send_signal(number)
        self.process.wait(20)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=f"http://127.0.0.1:{self.port}", timeout=30, trust_env=False)

    @property
    def left(self) -> list[str]:
        return sorted(path.name for path in self.directory.glob("*"))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BodyServer]:
    server = BodyServer(tmp_path_factory.mktemp("received"))
    yield server
    server.end()


@pytest.fixture
async def client(server: BodyServer) -> AsyncIterator[httpx.AsyncClient]:
    async with server.client() as client:
        yield client


async def blocks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield BLOCK


# -- backpressure ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/slow", "/file"])
async def test_a_large_body_does_not_fill_the_memory(tmp_path: Path, path: str) -> None:
    server = BodyServer(tmp_path)
    async with server.client() as client:
        answer = (await client.post(path, content=blocks(SIZE))).json()
    server.end()
    assert answer["size"] == SIZE * MEBIBYTE
    if path == "/file":
        assert answer["sha256"] == hashlib.sha256(BLOCK * SIZE).hexdigest()
    assert answer["peak_kib"] < 120 * 1024
    assert server.left == []


# -- limits ------------------------------------------------------------------------------------------------


def test_an_endless_body_is_refused_early(server: BodyServer) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield BLOCK

    url = f"http://127.0.0.1:{server.port}/file?limit={3 * MEBIBYTE}"
    answer = httpx.post(url, content=endless(), timeout=20, trust_env=False)
    assert answer.status_code == 413
    assert "3,145,728" in answer.json()["detail"]
    assert server.left == []


@pytest.mark.parametrize("path", ["/json", "/form", "/file?limit=100000"])
@pytest.mark.parametrize("chunked", [False, True])
async def test_limits_hold_however_a_body_is_sent(
    client: httpx.AsyncClient, server: BodyServer, path: str, chunked: bool
) -> None:
    media_type = "application/json" if path == "/json" else "application/x-www-form-urlencoded"
    if path.startswith("/file"):
        media_type = "application/octet-stream"

    async def pieces() -> AsyncIterator[bytes]:
        yield b"x" * 60_000
        yield b"x" * 60_000

    content = pieces() if chunked else b"x" * 120_000
    answer = await client.post(path, content=content, headers={"Content-Type": media_type})
    assert answer.status_code == 413
    assert server.left == []


async def test_a_body_of_exactly_the_limit_is_taken(client: httpx.AsyncClient) -> None:
    assert (await client.post("/file?limit=1000", content=b"x" * 1000)).status_code == 200
    assert (await client.post("/file?limit=999", content=b"x" * 1000)).status_code == 413


# -- bodies that stand still or break off --------------------------------------------------------------------


async def test_a_very_slow_body_is_aborted(server: BodyServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /file HTTP/1.1\r\nHost: x\r\nContent-Length: 5000\r\n\r\n")
    answer = asyncio.ensure_future(reader.readline())
    async with asyncio.timeout(20):
        while not answer.done():
            writer.write(b"x")
            await asyncio.wait({answer}, timeout=0.1)
    assert b" 400 " in answer.result()
    writer.close()
    await until(lambda: server.left == [])


async def test_a_stalled_body_is_aborted(server: BodyServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /file HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n" + b"x" * 1000)
    async with asyncio.timeout(20):
        answer = await reader.read()
    writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"stood still for 1 s" in answer
    assert server.left == []


@pytest.mark.parametrize("head", [b"Content-Length: 9000000", b"Transfer-Encoding: chunked"])
async def test_a_truncated_body_leaves_nothing(
    server: BodyServer, head: bytes, client: httpx.AsyncClient
) -> None:
    before = (await client.get("/seen")).json()["cancelled"]
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    piece = b"x" * 5_000_000
    if b"chunked" in head:
        piece = b"%x\r\n%b\r\n" % (len(piece), piece)
    writer.write(b"POST /file HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n\r\n" + piece)
    await writer.drain()
    await until(lambda: server.left != [])
    writer.close()
    await until(lambda: server.left == [])
    async with asyncio.timeout(20):  # the file goes before the handler's end is counted
        while (await client.get("/seen")).json()["cancelled"] != before + 1:
            pass


async def test_start_removes_the_upload_of_a_killed_server(tmp_path: Path) -> None:
    server = BodyServer(tmp_path)
    _, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /file HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n" + b"x" * 5_000_000)
    # A file in use is not swept; one that is just being made may be, and is made again.
    await until(lambda: server.left != [] and sweep(tmp_path) == 0)
    server.end(signal.SIGKILL)
    writer.close()
    assert server.left != []
    next_server = BodyServer(tmp_path)
    assert next_server.left == []
    next_server.end()


# -- answers without a clock -----------------------------------------------------------------------------


async def test_an_answer_lasts_as_long_as_it_is_read(client: httpx.AsyncClient) -> None:
    size = 0
    async with client.stream("GET", "/large") as answer:
        async for piece in answer.aiter_bytes(MEBIBYTE):
            size += len(piece)
            await asyncio.sleep(0.02)  # the slowness that is tested
    assert size == 64 * MEBIBYTE


# -- answers before the end of a body -----------------------------------------------------------------------


@pytest.mark.parametrize(("path", "status"), [("/ignore", 200), ("/refuse", 403), ("/nowhere", 404)])
@pytest.mark.parametrize("megabytes", [1, 50])
async def test_an_answer_without_reading_arrives(
    client: httpx.AsyncClient, path: str, status: int, megabytes: int
) -> None:
    async with asyncio.timeout(20):
        answer = await client.post(path, content=blocks(megabytes))
        assert answer.status_code == status
        assert (await client.get("/seen")).status_code == 200


async def test_an_early_error_is_sent_at_once_and_closes(server: BodyServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /refuse HTTP/1.1\r\nHost: x\r\nContent-Length: 900000000\r\n\r\n" + b"x" * 1000)
    async with asyncio.timeout(1):
        head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 403 ")
    assert b"connection: close" in head.lower()
    async with asyncio.timeout(10):
        await reader.read()  # to the end: the server closes although the client does not
    writer.close()


async def test_small_refused_bodies_keep_the_connection(server: BodyServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for path, status in [("/refuse", b"403"), ("/ignore", b"200"), ("/nowhere", b"404")]:
        writer.write(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n".encode())
        await writer.drain()
        writer.write(b"body")
        head, _ = await read_response(reader)
        assert head.startswith(b"HTTP/1.1 " + status)
        assert b"connection: close" not in head.lower()
    writer.close()


async def read_response(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """Head and body of a response with a length."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().splitlines() if line.startswith(b"content-length"))
    return head, await reader.readexactly(int(length.split(b":")[1]))


async def test_expect_continue(server: BodyServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"POST /file HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
    writer.write(b"hits")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
    writer.close()


# -- forms --------------------------------------------------------------------------------------------------


async def test_a_part_of_a_form_is_the_file(client: httpx.AsyncClient, server: BodyServer) -> None:
    content = os.urandom(7 * MEBIBYTE) + b"\r\n--"
    files = {"predictions": ("p.parquet", content, "application/octet-stream")}
    answer = await client.post("/file", files=files, data={"model_repo": "ada/tracker", "note": "größer"})
    assert answer.status_code == 200
    assert answer.json()["sha256"] == hashlib.sha256(content).hexdigest()
    assert answer.json()["size"] == len(content)
    assert answer.json()["fields"] == {"model_repo": "ada/tracker", "note": "größer"}
    assert server.left == []


def form(*parts: tuple[str, bytes], end: bytes = b"--b--\r\n") -> bytes:
    head = b"--b\r\nContent-Disposition: form-data; %b\r\n\r\n%b\r\n"
    return b"".join(head % (disposition.encode(), content) for disposition, content in parts) + end


FILE = ('name="predictions"; filename="p"', b"hits")


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (form(FILE), 200, ""),
        (form(('name="predictions"', b"hits")), 200, ""),
        (form(('name="x"', b"1"), FILE), 200, ""),
        (form(FILE, FILE), 400, "two parts named 'predictions'"),
        (form(('name="x"', b"1"), ('name="x"', b"2"), FILE), 400, "two parts named 'x'"),
        (form(('name="x"', b"1")), 400, "no part named 'predictions'"),
        (form(FILE, ('name="y"; filename="y"', b"1")), 400, "'y'"),
        (form(('filename="p"', b"hits")), 400, "no name"),
        (form(FILE, ('name="x"', b"\xff")), 400, "UTF-8"),
        (form(FILE, end=b""), 400, "cannot be read"),
        (b"", 400, "cannot be read"),
        (b"no form at all", 400, "cannot be read"),
        (b"--b--\r\n", 400, "no part named"),
        (b"--b\r\n\r\n\r\nhits\r\n--b--\r\n", 400, "cannot be read"),
        (b"--b\r\n" + b"X: " + b"x" * 5_000_000, 413, "headers too long"),
        (form(FILE, ('name="x"', b"x" * 70_000)), 413, "fields are larger"),
        (form(*[(f'name="x{i}"', b"1") for i in range(70)], FILE), 413, "parts"),
        (form((FILE[0], b"x" * 6_000_001)), 413, "6,000,000"),
    ],
)
async def test_forms(
    client: httpx.AsyncClient, server: BodyServer, body: bytes, status: int, says: str
) -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    answer = await client.post("/file?limit=6000000", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    if status == 200:
        assert answer.json()["content"] == "hits"
    else:
        assert says in answer.json()["detail"]
    assert server.left == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/html"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Encoding": "gzip"}, 415),
        ({"Content-Type": "multipart/form-data"}, 400),
        ({"Content-Type": "multipart/form-data; boundary=" + "b" * 500}, 400),
        ({"Content-Type": "application/vnd.apache.parquet"}, 200),
        ({}, 200),
    ],
)
async def test_kinds_of_body(
    client: httpx.AsyncClient, server: BodyServer, headers: dict[str, str], status: int
) -> None:
    answer = await client.post("/file", content=b"hits", headers=headers)
    assert answer.status_code == status, answer.text
    assert server.left == []


# -- ordinary handlers --------------------------------------------------------------------------------------


async def test_json_and_forms_work_as_always(client: httpx.AsyncClient) -> None:
    document = {"channel": "ttbar", "events": [1] * 1000}
    answer = await client.post("/json", json=document)
    assert answer.json() == {"json": document, "again": document}
    assert (await client.post("/form", data={"a": "1"})).json() == {"a": "1"}


@pytest.mark.parametrize("body", [b"{", b"\xff", b"[" * 50_000, b"", json.dumps({"a": 1}).encode()[:-1]])
async def test_bad_json_is_a_bad_request(client: httpx.AsyncClient, body: bytes) -> None:
    answer = await client.post("/json", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["detail"]


async def test_pipelined_requests_do_not_mix(server: BodyServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    one = b"POST /file HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n"
    writer.write(one + b"abc" + one + b"def")
    for content in (b"abc", b"def"):
        head, body = await read_response(reader)
        assert head.startswith(b"HTTP/1.1 200")
        assert json.loads(body)["content"] == content.decode()
    writer.close()
