"""A bucket that fails while a server runs: 503 with Retry-After, no partial state, and recovery."""

from __future__ import annotations

import http.client
import json
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest
from tests.dask_cluster import running
from tests.s3 import USER, S3Server, s3_server, s3_variables

from collidium.testing.databases import migrate, sqlite_url
from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, files_below, import_truth, ok, parquet, signed_in
from .test_resumable_uploads import append, begin

__all__ = ["s3_server"]

BUCKET = "s3://files/failing"
WRITES = frozenset({"PUT", "POST"})
READS = frozenset({"GET", "HEAD"})
#: What a store answers in place of what it should: the status with its code of error, or what it does.
FAULTS: dict[str, tuple[int, str] | str] = {
    "read-only": (403, "AccessDenied"),
    "full": (507, "InsufficientStorage"),
    "broken": (500, "InternalError"),
    "busy": (503, "SlowDown"),
    "missing": (404, "NoSuchBucket"),
    "silent": "silent",
    "away": "away",
    "damaging": "damaging",
}
#: Requests of a submission that another machine scores.
STEPS = {
    "lending": (WRITES, "/uploads/"),
    "fetching": (READS, "/uploads/"),
    "keeping": (WRITES, "/predictions/"),
}


@dataclass
class Faults:
    """Requests of these methods whose paths contain ``within`` meet that fault, until they are released."""

    methods: frozenset[str] = frozenset()
    fault: tuple[int, str] | str = ""
    within: str = ""
    released: Event = field(default_factory=Event)
    met: Event = field(default_factory=Event)


class Between(BaseHTTPRequestHandler):
    """Passes requests on to the store, but for those that are to fail."""

    protocol_version = "HTTP/1.1"
    store: str
    faults: Faults

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        meant = self.command in self.faults.methods and self.faults.within in self.path
        fault = self.faults.fault if meant else None
        if meant:
            self.faults.met.set()
        if isinstance(fault, tuple):
            status, code = fault
            return self._answer(status, {}, f"<Error><Code>{code}</Code></Error>".encode())
        if fault in {"silent", "away"}:
            if fault == "silent":
                self.faults.released.wait(60)
            self.close_connection = True
            return None
        connection = http.client.HTTPConnection(self.store, timeout=60)
        damaged = _damaged(body) if fault == "damaging" else body
        connection.request(self.command, self.path, damaged, dict(self.headers))
        found = connection.getresponse()
        content = found.read()
        connection.close()
        if fault == "damaging" and self.command == "GET":
            content = _damaged(content)
        return self._answer(found.status, dict(found.headers), content, slow=fault == "slow")

    do_GET = do_HEAD = do_POST = do_DELETE = do_PUT  # noqa: N815 -- as the server looks for them

    def _answer(self, status: int, headers: dict[str, str], body: bytes, *, slow: bool = False) -> None:
        self.send_response(status)
        length = (
            {} if self.command == "HEAD" and "Content-Length" in headers else {"Content-Length": len(body)}
        )
        for name, value in {**headers, **length}.items():
            if name not in {"Transfer-Encoding", "Connection", "Date", "Server"}:
                self.send_header(name, str(value))
        self.end_headers()
        if self.command != "HEAD":
            while slow and body and not self.faults.released.wait(0.1):
                self.wfile.write(body[:1])
                body = body[1:]
            self.wfile.write(body)

    def log_message(self, *arguments: Any) -> None:
        pass


def _damaged(content: bytes) -> bytes:
    """The same length with another first byte."""
    return bytes([content[0] ^ 1]) + content[1:] if content else content


class Service:
    """A server, and the store behind what makes it fail."""

    def __init__(self, server: ServerProcess, faults: Faults) -> None:
        self.server = server
        self._faults = faults

    @contextmanager
    def failing(self, methods: frozenset[str], fault: str, within: str = "") -> Iterator[Event]:
        """The store fails in the context; the event is set when it first did."""
        faults = self._faults
        faults.released, faults.met = Event(), Event()
        faults.fault, faults.methods, faults.within = FAULTS.get(fault, fault), methods, within
        try:
            yield faults.met
        finally:
            faults.methods = frozenset()
            faults.released.set()


@pytest.fixture(scope="module")
def service(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(s3_server, tmp_path_factory.mktemp("service")) as service:
        yield service


@pytest.fixture(scope="module")
def elsewhere(s3_server: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server whose submissions are scored by a worker of Dask, which reads the same store."""
    with serving(s3_server, tmp_path_factory.mktemp("elsewhere"), workers=1) as service:
        yield service


@contextmanager
def serving(s3_server: S3Server, directory: Path, workers: int = 0) -> Iterator[Service]:
    faults = Faults()
    handler = type("Handler", (Between,), {"store": urlsplit(s3_server.url).netloc, "faults": faults})
    with ExitStack() as stack:
        between = stack.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), handler))
        between.daemon_threads = True
        thread = Thread(target=between.serve_forever)
        thread.start()
        stack.callback(thread.join)
        stack.callback(between.shutdown)
        database = sqlite_url(directory / "database.sqlite3")
        migrate(database)
        variables = s3_variables(f"http://127.0.0.1:{between.server_port}", USER, BUCKET)
        variables["PLATFORM_STORAGE_S3_TIMEOUT_SECONDS"] = "5"
        variables["PLATFORM_SUBMISSIONS_PER_DAY"] = "1000"
        if workers:
            cluster = stack.enter_context(running(directory / "cluster", workers, variables))
            variables |= cluster.variables()
        server = ServerProcess(directory / "server", database, variables)
        import_truth(server)
        with server:
            yield Service(server, faults)
            audit = json.loads(server.run("ledger", "audit", "--json").stdout)
            assert audit == {"mismatches": [], "totals": []}


def unavailable(answer: httpx.Response) -> None:
    assert answer.status_code == 503, answer.text
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "AWS" not in answer.text


def reason(fault: str) -> str:
    """What the log says of it."""
    found = FAULTS[fault]
    named = {"damaging": "BadDigest|returned another file"}
    return found[1] if isinstance(found, tuple) else named.get(fault, "cannot be reached")


def file_of(oracle: pa.Table, note: str) -> bytes:
    return parquet(oracle.replace_schema_metadata({"note": note}))


def count(store: S3Server, path: str) -> int:
    """Number of objects whose key begins with the path."""
    prefix = f"{BUCKET.partition('files/')[2]}/{path}"
    return int(store.client().list_objects_v2(Bucket="files", Prefix=prefix)["KeyCount"])


def stored(store: S3Server, content: bytes) -> int:
    """Number of objects with the predictions."""
    return count(store, f"predictions/{sha256(content).hexdigest()}")


@pytest.mark.parametrize("fault", FAULTS)
def test_submissions_wait_for_a_bucket_that_takes_nothing(
    service: Service, s3_server: S3Server, oracle: pa.Table, fault: str
) -> None:
    content = file_of(oracle, fault)
    with signed_in(service.server, f"w-{fault}") as caller:
        with service.failing(WRITES, fault):
            unavailable(caller.post(SUBMIT, content=content))
        assert caller.get("/v1/me/submissions").json() == []
        assert [one["reason"] for one in caller.get("/v1/me/transactions").json()] == ["signup_grant"]
        assert stored(s3_server, content) == 0
        assert files_below(service.server.data_dir / "uploads") == []
        assert not ok(caller.post(SUBMIT, content=content))["deduplicated"]
        assert stored(s3_server, content) == len(caller.get("/v1/me/submissions").json()) == 1


@pytest.mark.parametrize("fault", FAULTS)
def test_scoring_waits_for_a_bucket_that_returns_no_truth(
    service: Service, oracle: pa.Table, fault: str
) -> None:
    truth = service.server.data_dir / "truth" / "tracking"
    shutil.rmtree(truth)
    content = file_of(oracle, f"{fault}, reading")
    with signed_in(service.server, f"r-{fault}") as caller:
        with service.failing(READS, fault):
            unavailable(caller.post(SUBMIT, content=content))
        assert files_below(truth) == []
        assert caller.post(SUBMIT, content=content).status_code == 200


def test_an_upload_in_parts_waits_for_its_bucket(service: Service, oracle: pa.Table) -> None:
    """Nothing of it is sent again."""
    content = file_of(oracle, "in parts")
    with signed_in(service.server, "in-parts") as caller:
        where = begin(caller, content)
        with service.failing(WRITES, "full"):
            unavailable(append(caller, where, content, 0))
        assert caller.head(where).headers["Upload-Offset"] == str(len(content))
        assert append(caller, where, b"", len(content)).status_code == 200


@pytest.mark.parametrize(
    ("step", "fault"),
    [
        *(("fetching", fault) for fault in FAULTS),
        *(("lending", "full"), ("lending", "damaging"), ("keeping", "full"), ("keeping", "silent")),
    ],
)
def test_scoring_elsewhere_waits_for_a_bucket(
    elsewhere: Service, s3_server: S3Server, oracle: pa.Table, step: str, fault: str
) -> None:
    """Also in the middle of a submission, which is not blamed for what the bucket does."""
    methods, within = STEPS[step]
    content = file_of(oracle, f"{fault}, {step}")
    with signed_in(elsewhere.server, f"{step}-{fault}") as caller:
        with elsewhere.failing(methods, fault, within) as met:
            answer = caller.post(SUBMIT, content=content)
        unavailable(answer)
        assert met.is_set()
        assert re.search(rf"{answer.headers['X-Request-Id']}\].*({reason(fault)})", elsewhere.server.log())
        assert caller.get("/v1/me/submissions").json() == []
        assert stored(s3_server, content) == 0
        assert caller.post(SUBMIT, content=content).status_code == 200
        assert stored(s3_server, content) == len(caller.get("/v1/me/submissions").json()) == 1
    assert count(s3_server, "uploads/") == 0


def test_scoring_elsewhere_goes_on_with_a_slow_bucket(elsewhere: Service, oracle: pa.Table) -> None:
    with signed_in(elsewhere.server, "slow") as caller, ThreadPoolExecutor() as pool:
        with elsewhere.failing(READS, "slow", "/uploads/") as met:
            answer = pool.submit(caller.post, SUBMIT, content=file_of(oracle, "slow"))
            assert met.wait(60)
        assert answer.result().status_code == 200
