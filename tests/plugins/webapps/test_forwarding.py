"""What scripts call for the account, on pages that are mounted on the server, and on pages served apart."""

from __future__ import annotations

import json
import os
import re
import socket
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from select import select
from urllib.parse import urlsplit

import pytest
from tests.core.servers import write_oracle
from tests.hub import token_on
from tests.waiting import eventually

from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.server import ServerProcess

from .apart import free_port, peak_kib, served_apart
from .visiting import Visitor

MEBIBYTE = 1024**2
#: A task that takes files of this size.
LARGE, LARGEST = "tracking_small", 250 * MEBIBYTE


@dataclass
class Site:
    """Where the pages are, which process serves them, and the backend behind them."""

    base_url: str
    pid: int
    backend: ServerProcess
    log: Path


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    port = free_port()
    env = {
        "PLATFORM_MAX_SUBMISSION_BYTES": str(LARGEST),
        "PLATFORM_OAUTH_REDIRECT_URIS": f"http://127.0.0.1:{port}/web/callback",
        "PLATFORM_SIGN_INS_PER_MINUTE": "1000",
    }
    directory = tmp_path_factory.mktemp("backend")
    with ExitStack() as stack:
        backend = stack.enter_context(ServerProcess(directory, env=env))
        events = ("--from", str(EVENTS_DIRECTORY), "--config", "ttbar_pu0", "--events", "3:5")
        for command in (
            ("truth", "import", "tracking", *events),
            ("truth", "import", "tracking_small", *events),
            ("task", "add", "tracking_small"),
        ):
            done = backend.run(*command)
            assert done.returncode == 0, done.stderr
        take_large_files(backend, "tracking_small")
        limits = {"PLATFORM_SIGN_INS_PER_MINUTE": "1000"}
        apart = stack.enter_context(
            served_apart(tmp_path_factory.mktemp("web"), backend.base_url, port=port, env=limits)
        )
        yield {
            "mounted": Site(backend.base_url, backend.pid, backend, directory / "server.log"),
            "apart": Site(apart.base_url, apart.process.pid, backend, apart.directory / "web.log"),
        }


def take_large_files(backend: ServerProcess, task: str) -> None:
    """Have the task take what is as large as the settings let it be: as if its truth had more rows."""
    with closing(sqlite3.connect(backend.data_dir / "collidium.sqlite3", timeout=10)) as db, db:
        (text,) = db.execute("SELECT manifest FROM truth_versions WHERE task = ?", (task,)).fetchone()
        manifest = json.loads(text)
        for table in manifest["tables"].values():
            table["rows"] *= 1000
        db.execute("UPDATE truth_versions SET manifest = ? WHERE task = ?", (json.dumps(manifest), task))


@pytest.fixture(params=["mounted", "apart"])
def site(sites: dict[str, Site], request: pytest.FixtureRequest) -> Site:
    return sites[request.param]


@pytest.fixture(scope="module")
def token(sites: dict[str, Site]) -> str:
    return token_on(sites["mounted"].backend.data_dir / "hub", "carrier")


@pytest.fixture
def visitor(site: Site, token: str) -> Iterator[Visitor]:
    """Somebody who is signed in."""
    with Visitor(site.base_url) as visitor:
        assert visitor.sign_in(token).status_code == 303
        yield visitor


def uploads(site: Site) -> list[Path]:
    """What the backend holds of bodies that are being received."""
    return list((site.backend.data_dir / "uploads").iterdir())


# -- calls -------------------------------------------------------------------------------------------------


def test_an_order_and_all_that_is_told_of_it(visitor: Visitor) -> None:
    order = {"preset": "ttbar-quick"}
    key = {"Idempotency-Key": os.urandom(8).hex()}
    answers = [visitor.call("POST", "/web/v1/simulate", json=order, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    first, second = (answer.json()["request_id"] for answer in answers)
    assert first == second
    address = answers[0].headers["Location"]
    assert address == f"/web/v1/requests/{first}"
    assert visitor.get(address).json()["request_id"] == first
    page = visitor.get("/web/v1/me/transactions?limit=1")
    assert len(page.json()) == 1
    assert page.headers["Link"].startswith("</web/v1/me/transactions?")
    assert visitor.call("POST", f"{address}/cancel").status_code in {200, 202, 409}


def test_the_backends_refusals_arrive_as_they_are(visitor: Visitor) -> None:
    answer = visitor.call("POST", "/web/v1/simulate", json={"channel": "ttbar", "events": -1, "pileup": 900})
    assert answer.status_code == 422
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert {error["field"] for error in answer.json()["errors"]} >= {"events", "pileup"}
    assert visitor.get("/web/v1/requests/nothing").status_code == 404
    assert visitor.get("/web/v1/requests?limit=-1").status_code == 422
    assert visitor.call("POST", "/web/v1/simulate", content=b"{").status_code in {400, 415, 422}
    assert visitor.call("POST", "/web/v1/simulate", json={"x": "x" * 100_000}).status_code == 413


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/web/v1/benchmark/tasks"),
        ("GET", "/web/v1/requests/%2e%2e"),
        ("GET", "/web/v1/requests/a%2Fcancel"),
        ("DELETE", "/web/v1/me"),
        ("POST", "/web/v1/me/webhook"),
        ("GET", "/web/admin/audit"),
        ("POST", "/web/v1/benchmark/..%2f..%2fsimulate/submit"),
    ],
)
def test_nothing_else_is_passed_on(visitor: Visitor, method: str, path: str) -> None:
    assert visitor.call(method, path).status_code in {404, 405}


@pytest.mark.parametrize(
    "headers",
    [{}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": "A" * 43}, {"Sec-Fetch-Site": "cross-site"}],
)
def test_what_changes_something_needs_the_sessions_secret(visitor: Visitor, headers: dict[str, str]) -> None:
    if "Sec-Fetch-Site" in headers:
        headers = {**headers, "X-CSRF-Token": visitor.csrf}
    for body in ({"json": {"preset": "ttbar-quick"}}, {"data": {"csrf_token": visitor.csrf}}):
        answer = visitor.post("/web/v1/simulate", headers=headers, **body)  # type: ignore[arg-type]
        assert answer.status_code == 403
        assert answer.headers["Content-Type"] == "application/problem+json"
    for body in ({"content": b"PAR1"}, {"files": {"predictions": b"PAR1"}}):
        assert visitor.post("/web/v1/benchmark/tracking/submit", headers=headers, **body).status_code == 403  # type: ignore[arg-type]


def test_nobody_calls_for_nobody(site: Site, token: str) -> None:
    with Visitor(site.base_url) as visitor:
        # A token of one's own is no way in here, nor is it passed on.
        bearer = {"Authorization": f"Bearer {token}"}
        for answer in (
            visitor.get("/web/v1/me", headers=bearer),
            visitor.post("/web/v1/simulate", json={}, headers={"X-CSRF-Token": "x", **bearer}),
            visitor.post("/web/v1/benchmark/tracking/check", content=b"x", headers={"X-CSRF-Token": "x"}),
        ):
            assert answer.status_code == 401
            assert answer.json()["detail"] == "sign in to go on"


def test_no_token_reaches_the_browser(visitor: Visitor) -> None:
    for path in ("/", "/web/v1/me", "/web/v1/requests"):
        answer = visitor.get(path)
        # All of the hub's tokens begin like this.
        assert not re.search(r"hub_[A-Za-z0-9_-]{30}", answer.text + repr(answer.headers.raw))


# -- files -------------------------------------------------------------------------------------------------


def test_predictions_are_checked_and_submitted(visitor: Visitor, tmp_path: Path) -> None:
    write_oracle(tmp_path / "oracle.parquet", seed=int.from_bytes(os.urandom(4), "little"))
    content = (tmp_path / "oracle.parquet").read_bytes()
    checked = visitor.call("POST", "/web/v1/benchmark/tracking/check", content=content)
    assert checked.status_code == 200, checked.text
    path = "/web/v1/benchmark/tracking/submit?model_repo=carrier/model"
    submitted = visitor.call("POST", path, content=content)
    assert submitted.status_code == 200, submitted.text
    assert submitted.json()["scores"]["trackml_weighted_efficiency"] == 1


def test_a_large_file_passes_through_in_pieces(site: Site, visitor: Visitor, tmp_path: Path) -> None:
    sparse = tmp_path / "predictions.parquet"
    sparse.touch()
    os.truncate(sparse, 200 * MEBIBYTE)
    before = peak_kib(site.pid)
    with sparse.open("rb") as file:
        headers = {"Content-Length": str(200 * MEBIBYTE)}
        answer = visitor.call("POST", f"/web/v1/benchmark/{LARGE}/check", content=file, headers=headers)
    assert answer.status_code == 422, answer.text
    assert "parquet" in answer.json()["detail"].lower()
    assert peak_kib(site.pid) - before < 60 * 1024
    assert uploads(site) == []


def beginning_of_upload(visitor: Visitor, size: int | None) -> socket.socket:
    """A connection on which a file of so many bytes was announced; None: of any size."""
    address = urlsplit(visitor.origin)
    connection = socket.create_connection((address.hostname or "", address.port or 0), timeout=60)
    cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    length = "Transfer-Encoding: chunked" if size is None else f"Content-Length: {size}"
    connection.sendall(
        f"POST /web/v1/benchmark/{LARGE}/submit HTTP/1.1\r\nHost: {address.netloc}\r\nCookie: {cookies}\r\n"
        f"X-CSRF-Token: {visitor.csrf}\r\nSec-Fetch-Site: same-origin\r\n{length}\r\n\r\n".encode()
    )
    return connection


def send_until_answered(connection: socket.socket, piece: bytes) -> bytes:
    """What is answered to somebody who sends on and on, as browsers do."""
    with suppress(ConnectionError):  # who does not read any more has answered
        while not select([connection], [], [], 0)[0]:
            connection.sendall(piece)
    return connection.recv(65536)


def test_a_file_that_is_too_large_is_refused_before_it_has_come(visitor: Visitor) -> None:
    with beginning_of_upload(visitor, 9_000_000_000) as connection:
        answer = send_until_answered(connection, bytes(MEBIBYTE))
    assert b" 413 " in answer
    assert b"application/problem+json" in answer
    assert b"connection: close" in answer


def test_a_file_without_an_end_is_refused_where_it_gets_too_large(site: Site, visitor: Visitor) -> None:
    with beginning_of_upload(visitor, None) as connection:
        chunk = f"{MEBIBYTE:x}\r\n".encode() + bytes(MEBIBYTE) + b"\r\n"
        assert b" 413 " in send_until_answered(connection, chunk)
    eventually(lambda: uploads(site) == [])


def test_a_client_that_goes_away_leaves_nothing(site: Site, visitor: Visitor) -> None:
    with beginning_of_upload(visitor, 100 * MEBIBYTE) as connection:
        connection.sendall(bytes(20 * MEBIBYTE))
        eventually(lambda: uploads(site) != [])
    eventually(lambda: uploads(site) == [])
    eventually(lambda: "collidium-forwarding" not in threads(site.pid))
    assert visitor.is_signed_in
    assert "Traceback" not in site.log.read_text()


def threads(pid: int) -> set[str]:
    return {path.read_text().strip() for path in Path(f"/proc/{pid}/task").glob("*/comm")}


def test_another_kind_of_body_is_told(visitor: Visitor) -> None:
    path = "/web/v1/benchmark/tracking/check"
    for headers in ({"Content-Type": "text/csv"}, {"Content-Encoding": "gzip"}):
        assert visitor.call("POST", path, content=b"a", headers=headers).status_code == 415
    assert visitor.call("POST", "/web/v1/benchmark/nothing/check", content=b"a").status_code == 404
