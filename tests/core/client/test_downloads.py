"""Downloads of files: to disk, with progress, resumed after broken connections and killed processes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import socket
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from tests.core.client.servers import answering, read_headers, response, serving
from tests.waiting import eventually

from collidium.client import AsyncClient, Client, downloads, transports
from collidium.errors import Conflict, NotFound, UnusableDataset, UpstreamError
from collidium.files.held import locked
from collidium.records import OutputFile

MEBIBYTE = 1024**2
REQUEST = "0c62a9ba44bd4ff18f0f73a8de5c3c2d"
PATH = "data/ttbar_pu0_hits/train-00000-of-00001.parquet"
CONTENT = bytes(range(256)) * (32 * MEBIBYTE // 256)
FILE = OutputFile(PATH, hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), 10)


class Sender:
    """Sends a file, or the range of it that is asked for, and hangs up after ``most`` bytes."""

    def __init__(self, content: bytes = CONTENT, *, most: int | None = None, ranges: bool = True) -> None:
        self._content, self._most, self._ranges = content, most, ranges
        self.request = b""

    def __call__(self, connection: socket.socket) -> None:
        self.request = read_headers(connection)
        asked = re.search(rb"(?i)\r\nrange: bytes=(\d+)-\r\n", self.request)
        start = int(asked[1]) if asked and self._ranges else 0
        last, length = len(self._content) - 1, len(self._content) - start
        status = "206 Partial Content" if start else "200 OK"
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {length}", "Connection: close"]
        if start:
            lines.append(f"Content-Range: bytes {start}-{last}/{len(self._content)}")
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        connection.sendall(self._content[start:][: self._most])


def test_a_file_is_received_on_disk_with_progress(tmp_path: Path) -> None:
    steps: list[tuple[int, int]] = []
    with serving(Sender()) as url, Client(url, "t") as client:
        tracemalloc.start()
        path = client.output_file(REQUEST, FILE, tmp_path, lambda done, of: steps.append((done, of)))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert client.output_file(REQUEST, FILE, tmp_path) == path, "no second request"
    assert path == tmp_path / PATH
    assert path.read_bytes() == CONTENT
    assert [other.name for other in path.parent.iterdir()] == [path.name]
    assert steps[-1] == (len(CONTENT), len(CONTENT))
    assert peak < 10 * MEBIBYTE


async def test_the_async_client_receives_and_resumes(tmp_path: Path) -> None:
    threads = set()
    first, second = Sender(most=3 * MEBIBYTE + 5), Sender()
    with serving(first, second) as url:
        async with AsyncClient(url, "t") as client:
            path = await client.output_file(
                REQUEST, FILE, tmp_path, lambda *_: threads.add(threading.current_thread())
            )
            await asyncio.sleep(0)
    assert path.read_bytes() == CONTENT
    assert threads == {threading.main_thread()}
    assert b"range: bytes=3145733-" in second.request.lower()


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_is_resumed(tmp_path: Path, ranges: bool) -> None:
    first, second = Sender(most=3 * MEBIBYTE), Sender(ranges=ranges)
    with serving(first, second) as url, Client(url, "t") as client:
        path = client.output_file(REQUEST, FILE, tmp_path)
    assert path.read_bytes() == CONTENT
    assert f'if-range: "{FILE.sha256}"' in second.request.decode().lower()


def test_a_killed_download_is_resumed_by_another_process(tmp_path: Path) -> None:
    script = (
        "import sys, msgspec; from collidium.client import Client; from collidium.records import OutputFile\n"
        "url, file, directory = sys.argv[1:]\n"
        "listed = msgspec.json.decode(file, type=OutputFile)\n"
        f"Client(url, 't').output_file({REQUEST!r}, listed, directory)"
    )
    file = json.dumps({"path": PATH, "sha256": FILE.sha256, "size_bytes": FILE.size_bytes, "rows": 10})
    resumed, stuck = Sender(), threading.Event()

    def stall(connection: socket.socket) -> None:
        Sender(most=5 * MEBIBYTE)(connection)
        stuck.wait(60)

    with serving(stall, resumed) as url:
        process = subprocess.Popen([sys.executable, "-c", script, url, file, str(tmp_path)])
        part = tmp_path / PATH

        def received() -> int:
            return sum(path.stat().st_size for path in part.parent.glob(".*.part"))

        eventually(lambda: part.parent.exists() and received() >= 4 * MEBIBYTE)
        process.kill()
        process.wait()
        stuck.set()
        with Client(url, "t") as client:
            assert client.output_file(REQUEST, FILE, tmp_path).read_bytes() == CONTENT
    assert re.search(rb"(?i)range: bytes=[4-5]\d{6}-", resumed.request)


def test_a_damaged_part_is_received_again(tmp_path: Path) -> None:
    part = tmp_path / PATH
    part.parent.mkdir(parents=True)
    part.with_name(f".{part.name}.{FILE.sha256[:16]}.part").write_bytes(b"x" * MEBIBYTE)
    with serving(Sender(), Sender()) as url, Client(url, "t") as client:
        assert client.output_file(REQUEST, FILE, tmp_path).read_bytes() == CONTENT


def test_another_content_is_not_kept(tmp_path: Path) -> None:
    wrong = b"x" + CONTENT[1:]
    with (
        serving(Sender(wrong), Sender(wrong)) as url,
        Client(url, "t") as client,
        pytest.raises(UnusableDataset, match="downloaded twice"),
    ):
        client.output_file(REQUEST, FILE, tmp_path)
    assert not (tmp_path / PATH).exists()


def test_more_than_announced_is_not_kept(tmp_path: Path) -> None:
    with serving(Sender(CONTENT + b"more"), Sender()) as url, Client(url, "t") as client:
        assert client.output_file(REQUEST, FILE, tmp_path).read_bytes() == CONTENT


def test_an_error_of_the_server_is_raised(tmp_path: Path) -> None:
    document = {
        "type": "about:blank",
        "title": "No",
        "status": 404,
        "detail": "the file is not kept any more",
    }
    gone = answering(response("404 Not Found", json.dumps(document).encode(), "application/problem+json"))
    with serving(gone) as url, Client(url, "t") as client, pytest.raises(NotFound, match="not kept"):
        client.output_file(REQUEST, FILE, tmp_path)


def test_a_download_under_way_is_not_disturbed(tmp_path: Path) -> None:
    part = tmp_path / PATH
    part.parent.mkdir(parents=True)
    with (
        locked(part.with_name(f".{part.name}.{FILE.sha256[:16]}.part")),
        Client("http://127.0.0.1:9", "t") as client,
        pytest.raises(Conflict, match="another process"),
    ):
        client.output_file(REQUEST, FILE, tmp_path)


def test_a_part_that_another_process_ended_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gets its name between the opening and the lock."""
    locks = downloads.lock

    def late(descriptor: int) -> bool:
        (part,) = (tmp_path / "data/ttbar_pu0_hits").glob(".*.part")
        part.rename(tmp_path / PATH)
        return locks(descriptor)

    monkeypatch.setattr(downloads, "lock", late)
    with Client("http://127.0.0.1:9", "t") as client, pytest.raises(Conflict, match="another process"):
        client.output_file(REQUEST, FILE, tmp_path)


def test_a_page_of_a_proxy_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "PATIENCE_SECONDS", -1)
    with (
        serving(Sender(b"<html>"), Sender()) as url,
        Client(url, "t") as client,
        pytest.raises(UpstreamError, match="6 bytes of"),
    ):
        client.output_file(REQUEST, FILE, tmp_path)
    assert not (tmp_path / PATH).exists()


def test_a_hash_that_is_none_is_refused(tmp_path: Path) -> None:
    with Client("http://127.0.0.1:9", "t") as client, pytest.raises(UpstreamError, match="SHA-256"):
        client.output_file(REQUEST, OutputFile(PATH, "a/b", 1, 1), tmp_path)


@pytest.mark.parametrize("path", ["../x", "/etc/x", "data/../../x", "", ".", "a\0b"])
def test_no_file_leaves_the_directory(tmp_path: Path, path: str) -> None:
    with Client("http://127.0.0.1:9", "t") as client, pytest.raises(UpstreamError, match="no path"):
        client.output_file(REQUEST, OutputFile(path, FILE.sha256, 1, 1), tmp_path / "events")
    assert list(tmp_path.iterdir()) == []
