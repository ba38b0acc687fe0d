"""What huggingface_hub does of what downloads promise, next to our own code, on the local hub.

    python perf/hub_library.py            24 shards of 5 MB
    python perf/hub_library.py --quick    a smoke: 6 shards of 0.5 MB

Bytes and requests are counted by a relay of TCP connections in front of the hub; times are taken without it.
Every way starts in a process of its own where it is killed or runs twice at once.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.testing.server import ServerProcess

REPO, CONFIG, TABLE = "perf/shards", "ttbar_pu0", "tracker_hits"
PARALLEL = 8
COLUMNS = [f"c{number}" for number in range(12)]
GROUPS = 10


# -- the ways ----------------------------------------------------------------------------------------------


def by_collidium(endpoint: str, cache: Path) -> list[Path]:
    from collidium import datasets

    there = cache.exists() and any(cache.iterdir())
    fetched = datasets.download(
        REPO, endpoint=endpoint, token="", cache=cache, parallel=PARALLEL, verify=there
    )
    return [fetched.directory / path for paths in fetched.shards.values() for path in paths]


def by_snapshot(endpoint: str, cache: Path) -> list[Path]:
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint, token=False)
    found = api.snapshot_download(REPO, repo_type="dataset", cache_dir=cache, max_workers=PARALLEL)
    return sorted(Path(found).rglob("*.parquet"))


def by_files(endpoint: str, cache: Path) -> list[Path]:
    """The library's download of a file, and our check of its hash on top."""
    from huggingface_hub import HfApi

    api = HfApi(endpoint=endpoint, token=False)
    info = api.dataset_info(REPO, files_metadata=True)

    def fetch(path: str, digest: str) -> Path:
        place = api.hf_hub_download(REPO, path, repo_type="dataset", revision=info.sha, cache_dir=cache)
        with Path(place).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise ValueError(path)
        return Path(place)

    shards = [file for file in info.siblings or () if file.lfs is not None]
    with ThreadPoolExecutor(PARALLEL) as threads:
        return list(threads.map(lambda file: fetch(file.rfilename, file.lfs.sha256), shards))


WAYS: dict[str, Callable[[str, Path], list[Path]]] = {
    "collidium": by_collidium,
    "snapshot_download": by_snapshot,
    "hf_hub_download, sha256 on top": by_files,
}


def column_by_collidium(endpoint: str, path: str) -> pa.Table:
    from collidium.hub.reader import HubReader, RemoteFile

    with HubReader(endpoint) as hub:
        remote = RemoteFile(hub, f"/datasets/{REPO}/resolve/main/{path}")
        with pq.ParquetFile(pa.PythonFile(remote, mode="r"), pre_buffer=True) as file:
            return file.read_row_group(GROUPS // 2, columns=[COLUMNS[3]])


def column_by_filesystem(endpoint: str, path: str, **options: object) -> pa.Table:
    from huggingface_hub import HfFileSystem

    system = HfFileSystem(endpoint=endpoint, token=False, skip_instance_cache=True)
    with (
        system.open(f"datasets/{REPO}/{path}", "rb", **options) as remote,
        pq.ParquetFile(remote, pre_buffer=True) as file,
    ):
        return file.read_row_group(GROUPS // 2, columns=[COLUMNS[3]])


# -- the hub, and what counts ------------------------------------------------------------------------------


class Relay:
    """Passes connections on and counts; ``hold_after`` so many bytes it passes no more."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._behind = (parts.hostname or "", parts.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}{parts.path}"
        self.sent = self.requests = 0
        self.hold_after: int | None = None
        self.held = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def forget(self) -> None:
        self.sent = self.requests = 0
        self.hold_after = None
        self.held.clear()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            hub = socket.create_connection(self._behind)
            for source, sink, down in ((client, hub, False), (hub, client, True)):
                threading.Thread(target=self._pass, args=(source, sink, down), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, down: bool) -> None:
        with suppress(OSError):
            while piece := source.recv(65536):
                with self._lock:
                    self.sent += len(piece) if down else 0
                    self.requests += 0 if down else piece.count(b" HTTP/1.1\r\n")
                    full = down and self.hold_after is not None and self.sent > self.hold_after
                if full:
                    self.held.set()
                    time.sleep(3600)
                sink.sendall(piece)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def shard(number: int, size: int) -> pa.Table:
    rng = np.random.default_rng(number)
    events, hits = 100, size // (100 * 4 * len(COLUMNS))
    offsets = pa.array(np.arange(events + 1) * hits, pa.int32())
    columns = {
        name: pa.ListArray.from_arrays(offsets, rng.random(events * hits, np.float32)) for name in COLUMNS
    }
    return pa.table({"event_id": pa.array(range(number * events, (number + 1) * events)), **columns})


@contextmanager
def published(directory: Path, shards: int, size: int) -> Iterator[tuple[str, dict[str, int]]]:
    """The address of a hub with a dataset, and its shards with their sizes."""
    from huggingface_hub import CommitOperationAdd, HfApi

    with ServerProcess(directory / "server") as server:
        api = HfApi(endpoint=server.hub_url, token=server.add_user("perf"))
        api.create_repo(REPO, repo_type="dataset")
        operations = []
        for number in range(shards):
            path = directory / f"train-{number:05}-of-{shards:05}.parquet"
            table = shard(number, size)
            pq.write_table(table, path, row_group_size=len(table) // GROUPS, compression="none")
            operations.append(CommitOperationAdd(f"data/{CONFIG}_{TABLE}/{path.name}", path))
        api.create_commit(REPO, operations, repo_type="dataset", commit_message="Shards")
        yield (
            server.hub_url,
            {made.path_in_repo: Path(made.path_or_fileobj).stat().st_size for made in operations},
        )


def start(way: str, endpoint: str, cache: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--copy", way, "--endpoint", endpoint, "--cache", str(cache)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


# -- what is measured --------------------------------------------------------------------------------------


def measure_whole(hub: str, relay: Relay, rounds: int, directory: Path) -> None:
    print("\n| a whole config | s | CPU s | MB | requests |\n|---|---:|---:|---:|---:|")
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in WAYS}
    for _ in range(rounds):
        for name, way in WAYS.items():
            with tempfile.TemporaryDirectory(dir=directory) as cache:
                before, cpu = time.perf_counter(), sum(os.times()[:2])
                way(hub, Path(cache))
                times[name].append((time.perf_counter() - before, sum(os.times()[:2]) - cpu))
    for name, way in WAYS.items():
        relay.forget()
        with tempfile.TemporaryDirectory(dir=directory) as cache:
            way(relay.url, Path(cache))
        seconds, cpu = (statistics.median(column) for column in zip(*times[name], strict=True))
        print(f"| {name} | {seconds:.2f} | {cpu:.2f} | {relay.sent / 1e6:.2f} | {relay.requests} |")


def measure_column(relay: Relay, path: str) -> None:
    print("\n| one column of one row group | s | kB | requests |\n|---|---:|---:|---:|")
    ways: dict[str, Callable[[], pa.Table]] = {
        "collidium": lambda: column_by_collidium(relay.url, path),
        "HfFileSystem": lambda: column_by_filesystem(relay.url, path),
        'HfFileSystem, cache_type="none"': lambda: column_by_filesystem(relay.url, path, cache_type="none"),
    }
    for name, way in ways.items():
        way()
        relay.forget()
        before = time.perf_counter()
        way()
        seconds = time.perf_counter() - before
        print(f"| {name} | {seconds:.3f} | {relay.sent / 1e3:.0f} | {relay.requests} |")


def measure_rest(relay: Relay, size: int, directory: Path) -> None:
    print(
        "\n| | killed at 60%: MB fetched again | two at once: MB | flipped bit found |\n|---|---:|---:|---|"
    )
    for name, way in WAYS.items():
        cache = Path(tempfile.mkdtemp(dir=directory))
        relay.forget()
        relay.hold_after = size * 6 // 10
        killed = start(name, relay.url, cache)
        relay.held.wait(120)
        time.sleep(1)  # what is on its way comes to the disk
        had = relay.hold_after
        killed.kill()
        killed.wait()
        relay.forget()
        places = way(relay.url, cache)
        again = relay.sent - (size - had)
        found = flipped_is_found(places[0], lambda way=way, cache=cache: way(relay.url, cache))
        relay.forget()
        shared = Path(tempfile.mkdtemp(dir=directory))
        both = [start(name, relay.url, shared) for _ in range(2)]
        for process in both:
            if process.wait(300):
                raise SystemExit(f"{name} failed with another at the same time")
        print(f"| {name} | {again / 1e6:.2f} | {relay.sent / 1e6:.2f} of {size / 1e6:.2f} | {found} |")


class _Hostile(BaseHTTPRequestHandler):
    """Lists without an end whose next page is elsewhere, and files that go on when they should end."""

    protocol_version = "HTTP/1.1"
    pages = sent = 0
    leaked = False
    elsewhere = ""

    def log_message(self, *_: object) -> None:
        """It is not read."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if "/resolve/" in self.path:
            return self._endless_file()
        body = b"[]" if "/tree/" in self.path else b'{"id": "perf/shards", "sha": "%s"}' % (b"a" * 40)
        self.send_response(200)
        if "/tree/" in self.path:
            type(self).pages += 1
            type(self).leaked |= "elsewhere" in self.path and "Authorization" in self.headers
            link = f"{self.elsewhere}{self.path.partition('?')[0]}?elsewhere&cursor=again"
            self.send_header("Link", f'<{link}>; rel="next"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        return None

    def _endless_file(self) -> None:
        self.send_response(200)
        self.send_header("ETag", f'"{"b" * 40}"')
        self.send_header("X-Repo-Commit", "a" * 40)
        self.send_header("X-Linked-Size", "1000")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        with suppress(OSError):
            while self.command == "GET" and self.sent < 100_000_000:
                self.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")
                type(self).sent += 65536
        self.close_connection = True


def measure_hostile(directory: Path) -> None:
    from huggingface_hub import HfApi

    from collidium.hub.reader import HubReader

    print("\n| a hostile hub | collidium | huggingface_hub |\n|---|---|---|")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Hostile)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    _Hostile.elsewhere = f"http://localhost:{server.server_port}"
    api = HfApi(endpoint=url, token="hf_secret")  # noqa: S106 -- no real one

    def listed(list_all: Callable[[], object]) -> tuple[int, bool]:
        _Hostile.pages, _Hostile.leaked = 0, False

        def run() -> None:
            with suppress(Exception):
                list_all()

        asking = threading.Thread(target=run, daemon=True)
        asking.start()
        asking.join(2)
        return _Hostile.pages, _Hostile.leaked

    hub = HubReader(url, "hf_secret")
    tree = f"/api/datasets/{REPO}/tree/main"
    own, own_leak = listed(lambda: list(hub.pages(tree, REPO, recursive="true")))
    theirs, leak = listed(lambda: list(api.list_repo_tree(REPO, repo_type="dataset", recursive=True)))
    print(f"| pages of a list without an end, asked in 2 s | {own} | {theirs} |")
    print(f"| token sent to the host that a next page names | {own_leak} | {leak} |")
    with suppress(Exception):
        api.hf_hub_download(REPO, "endless", repo_type="dataset", cache_dir=directory / "hostile")
    print(f"| MB taken of a file said to have 1 kB | bounded by its size | {_Hostile.sent / 1e6:.0f} |")


def flipped_is_found(place: Path, again: Callable[[], object]) -> str:
    content = bytearray(place.read_bytes())
    content[len(content) // 2] ^= 1
    place.resolve().write_bytes(content)
    try:
        again()
    except ValueError:
        return "yes"
    return "no" if place.read_bytes() == content else "yes"


def main() -> None:
    os.environ["HF_HUB_DISABLE_XET"] = os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run of some seconds")
    parser.add_argument("--copy", help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.copy:
        WAYS[options.copy](options.endpoint, options.cache)
        return
    shards, size, rounds = (6, 500_000, 1) if options.quick else (24, 5_000_000, 5)
    with tempfile.TemporaryDirectory(prefix="collidium-perf-") as made:
        directory = Path(made)
        with published(directory, shards, size) as (hub, sizes):
            relay = Relay(hub)
            measure_whole(hub, relay, rounds, directory)
            measure_column(relay, next(iter(sizes)))
            measure_rest(relay, sum(sizes.values()), directory)
        measure_hostile(directory)


if __name__ == "__main__":
    main()
