"""Invalid and hostile responses of a hub: clear errors, and no token for other hosts."""

from __future__ import annotations

import hashlib
import io
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium import datasets
from collidium.errors import CollidiumError, Unreachable, UnusableDataset, UpstreamError
from collidium.hub import reader
from collidium.hub.repository import HubFile, Repository
from collidium.hub.sources import HubDataset
from collidium.runtime.waiting import Backoff

COMMIT = "a" * 40
SHARD = "data/ttbar_pu0_tracker_hits/train-00000-of-00001.parquet"


def shard(column: str = "tx") -> bytes:
    buffer = io.BytesIO()
    table = pa.table({"event_id": pa.array(range(10), pa.uint32()), column: pa.array([[1.0]] * 10)})
    pq.write_table(table, buffer, store_schema=False)
    return buffer.getvalue()


CONTENT = shard()


def entry(path: str = SHARD, size: float | None = None, content: bytes = CONTENT) -> dict[str, Any]:
    length = len(content) if size is None else size
    digest = hashlib.sha256(content).hexdigest()
    return {
        "type": "file",
        "path": path,
        "size": length,
        "oid": digest,
        "lfs": {"size": length, "oid": digest},
    }


@dataclass
class Hub:
    """Its attributes decide what it answers."""

    url: str = ""
    about: str = json.dumps({"sha": COMMIT})
    tree: str = field(default_factory=lambda: json.dumps([entry()]))
    tree_headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes = CONTENT
    #: Sent after a range that was asked for.
    more: bytes = b""
    #: For contents, instead of them.
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Bytes of each content that are sent before the connection breaks, by a hub without ranges.
    cuts: Iterator[int] | None = None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        """Nothing reads it."""

    def do_GET(self) -> None:
        if "/revision/" in self.path:
            self._answer(200, self.hub.about.encode())
        elif "/tree/" in self.path:
            self._answer(200, self.hub.tree.encode(), self.hub.tree_headers)
        elif self.hub.status:
            self._answer(self.hub.status, b"", self.hub.headers)
        elif self.hub.cuts is not None:
            length = {"Content-Length": str(len(self.hub.content))}
            self._answer(200, self.hub.content[: next(self.hub.cuts)], length)
            self.close_connection = True
        elif wanted := self.headers.get("Range"):
            # The end of the content is the end of the file, whatever its announced length.
            first, last = map(int, wanted.removeprefix("bytes=").split("-"))
            content = self.hub.content[first - last - 1 :] + self.hub.more
            self._answer(206, content, {"Content-Range": f"bytes {first}-{last}/*"})
        else:
            self._answer(200, self.hub.content)

    def _answer(self, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    quick = Backoff(first=timedelta(milliseconds=1), longest=timedelta(milliseconds=5))
    monkeypatch.setattr(reader, "BACKOFF", quick)
    monkeypatch.setattr(reader, "_MAX_RETRY_AFTER", 0.01)
    scripted = Hub()
    handler = type("_OfThis", (_Handler,), {"hub": scripted})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    scripted.url = f"http://127.0.0.1:{server.server_address[1]}"
    yield scripted
    server.shutdown()
    server.server_close()
    thread.join()


def listed(hub: Hub) -> object:
    return datasets.list_tables("ada/events", endpoint=hub.url)


def downloaded(hub: Hub) -> object:
    return datasets.download("ada/events", endpoint=hub.url)


def refused(call: Callable[[Hub], object], hub: Hub) -> CollidiumError:
    with pytest.raises(CollidiumError) as refusal:
        call(hub)
    assert "secret" not in str(refusal.value)
    return refusal.value


@pytest.mark.parametrize(
    "tree",
    [
        "[" * 100_000,
        json.dumps([entry(size=float("inf"))]),
        json.dumps([entry(size=float("nan"))]),
        json.dumps([entry(path="data/ttbar_pu0_x/\ud800.parquet")]),
        json.dumps([entry(path="data/../../x_pu0_y.parquet")]),
    ],
    ids=["deep", "infinite", "no number", "half a character", "elsewhere"],
)
def test_invalid_lists_of_files_are_upstream_errors(hub: Hub, tree: str) -> None:
    hub.tree = tree
    assert isinstance(refused(downloaded, hub), UpstreamError)


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_an_endless_page_is_aborted(hub: Hub, monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    monkeypatch.setattr(reader, "_MAX_PAGE_BYTES", 1000)
    hub.tree_headers = {"Content-Encoding": encoding}
    hub.tree = json.dumps([entry()] * 100)
    assert "a too long response" in str(refused(downloaded, hub))


def test_attempts_end_at_a_hub_without_ranges(hub: Hub) -> None:
    """What an earlier attempt had received before is no progress."""
    cuts = [3, 5] * 50
    hub.cuts = iter(cuts)
    assert isinstance(refused(downloaded, hub), Unreachable)


def test_an_endless_list_is_aborted(hub: Hub) -> None:
    hub.tree_headers = {"Link": '<http://elsewhere.example/tree?cursor=again>; rel="next"'}
    assert "an endless list" in str(refused(downloaded, hub))


@pytest.mark.parametrize("call", [listed, downloaded])
@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:99999/x",
        "http://[bad/x",
        "data:text/plain,x",
        "file:///etc/passwd",
        f"http://{'a' * 300}.example/x",
        "http://a..b/x",
        "/\xe4\xff",
        "http://ada:secret@127.0.0.1/x",
        "ftp://127.0.0.1/x",
    ],
)
def test_an_invalid_redirect_is_an_upstream_error(
    hub: Hub, target: str, call: Callable[[Hub], object]
) -> None:
    hub.status, hub.headers = 302, {"Location": target}
    assert isinstance(refused(call, hub), UpstreamError | Unreachable)


@pytest.mark.parametrize("call", [listed, downloaded])
def test_a_redirect_with_a_password_is_not_followed(hub: Hub, call: Callable[[Hub], object]) -> None:
    hub.status, hub.headers = 302, {"Location": hub.url.replace("://", "://ada:secret@")}
    assert "invalid response" in str(refused(call, hub))


@pytest.mark.parametrize("wait", ["9" * 5000, "31536000", "-1", "soon"])
def test_retry_after_is_bounded(hub: Hub, wait: str) -> None:
    hub.status, hub.headers = 429, {"Retry-After": wait}
    assert "answered 429" in str(refused(downloaded, hub))


def test_a_too_long_range_is_not_read(hub: Hub) -> None:
    hub.more = b"x"
    assert "another range" in str(refused(listed, hub))


def test_a_wrong_footer_length_is_reported(hub: Hub) -> None:
    hub.content = CONTENT[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1"
    hub.content = hub.content.rjust(64 * 1024, b"\0")
    hub.tree = json.dumps([entry(content=hub.content, size=2**40)])
    assert "is not a parquet file" in str(refused(listed, hub))


def test_invalid_column_names_are_reported(hub: Hub) -> None:
    hub.content = shard("QQQQ").replace(b"QQQQ", b"\xff\xfe\xfd\xfc")
    hub.tree = json.dumps([entry(content=hub.content)])
    assert "cannot be read as parquet" in str(refused(listed, hub))
    with pytest.raises(UnusableDataset, match="cannot be read as parquet"):
        datasets.load("ada/events", tables="tracker_hits", endpoint=hub.url)


def test_a_part_is_never_of_another_file(hub: Hub, tmp_path: Path) -> None:
    datasets.list_tables("ada/events", endpoint=hub.url, cache=tmp_path / "shared")
    (snapshots,) = (tmp_path / "shared").glob("*/*/snapshots")
    precious = tmp_path / "precious"
    precious.write_text("mine")
    part = snapshots.parent / "parts" / f"{hashlib.sha256(CONTENT).hexdigest()}.part"
    part.parent.mkdir()
    part.symlink_to(precious)
    with pytest.raises(OSError, match="symbolic links"):
        datasets.download("ada/events", endpoint=hub.url, cache=tmp_path / "shared")
    assert precious.read_text() == "mine"


def test_one_file_is_found_before_a_list_ends(hub: Hub) -> None:
    """Repositories may have millions of files: a server that looks for one holds a page of them."""
    hub.tree_headers = {"Link": '<http://elsewhere.example/tree?cursor=again>; rel="next"'}
    with reader.HubReader(hub.url) as reading:
        place = HubDataset("ada/events", hub.url, "main")
        repository = Repository.read(reading, place, is_wanted=lambda _: False)
        assert repository.find(reading, SHARD) == HubFile(SHARD, len(CONTENT), entry()["oid"])
        hub.tree = json.dumps([entry(path="../x")])
        with pytest.raises(UpstreamError):
            repository.find(reading, SHARD)
