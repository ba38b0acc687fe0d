"""Invalid predictions: a 4xx that lists every problem, and nothing is stored."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx
import pyarrow as pa
import pytest
from tests.counts import LONG
from tests.waiting import eventually

from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, files_below, name_of, parquet

#: More than there are hits, in a file of some kilobytes.
BOMB_ROWS = 30_000_000 if LONG else 3_000_000

Spoil = Callable[[pa.Table], bytes]


def with_column(name: str, make: Callable[[int], pa.Array]) -> Spoil:
    return lambda table: parquet(table.set_column(table.column_names.index(name), name, make(table.num_rows)))


def with_value(name: str, value: object, kind: pa.DataType | None = None) -> Spoil:
    def spoil(table: pa.Table) -> bytes:
        values = table[name].to_pylist()
        values[7] = value
        return parquet(
            table.set_column(table.column_names.index(name), name, pa.array(values, kind or pa.int64()))
        )

    return spoil


def bomb(table: pa.Table) -> bytes:
    return parquet(pa.table({name: pa.array([3] * BOMB_ROWS, pa.int64()) for name in table.column_names}))


BAD: dict[str, tuple[Spoil, str | None]] = {
    "text ids": (with_column("hit_id", lambda n: pa.array([str(i) for i in range(n)])), "hit_id"),
    "float ids": (with_column("track_id", lambda n: pa.array([float(i) for i in range(n)])), "track_id"),
    "a null event": (with_value("event_id", None), "event_id"),
    "a negative hit": (with_value("hit_id", -5), "hit_id"),
    "an event past the range": (with_value("event_id", 5), "event_id"),
    "an unknown hit": (with_value("hit_id", 10**9), "hit_id"),
    "a repeated row": (lambda t: parquet(pa.concat_tables([t.slice(0, 10), t.slice(0, 1)])), "hit_id"),
    "a missing column": (lambda t: parquet(t.drop_columns(["track_id"])), "track_id"),
    "an extra column": (lambda t: parquet(t.append_column("particle_id", t["track_id"])), "particle_id"),
    "an empty table": (lambda t: parquet(t.slice(0, 0)), None),
    "more rows than there are hits": (lambda t: parquet(pa.concat_tables([t, t])), None),
    "a truncated file": (lambda t: parquet(t)[:-200], None),
    "an empty body": (lambda t: b"", None),
    "a parquet bomb": (bomb, None),
}


def scores_of(client: httpx.Client) -> list[object]:
    """The client's own places on the leaderboard."""
    board = client.get("/v1/leaderboard/tracking?all=true&limit=1000").json()
    return [place for place in board if place["hub_username"] == name_of(client)]


@pytest.mark.parametrize("endpoint", ["submit", "check"])
def test_every_bad_file_is_refused_and_leaves_nothing(
    platform: ServerProcess, alice: httpx.Client, oracle: pa.Table, endpoint: str
) -> None:
    wrong, kept = {}, files_below(platform.data_dir / "storage" / "predictions")
    for name, (spoil, column) in BAD.items():
        answer = alice.post(f"/v1/benchmark/tracking/{endpoint}", content=spoil(oracle))
        document = answer.json()
        columns = {problem.get("column") for problem in document.get("errors", [])}
        if (
            answer.status_code != 422
            or answer.headers["Content-Type"] != "application/problem+json"
            or (column is not None and column not in columns)
        ):
            wrong[name] = (answer.status_code, document)
    assert not wrong, json.dumps(wrong, indent=1)
    assert scores_of(alice) == []
    assert alice.get("/v1/me").json()["credits"] == 10
    assert files_below(platform.data_dir / "uploads") == []
    assert files_below(platform.data_dir / "storage" / "predictions") == kept


def test_no_answer_reveals_truth(alice: httpx.Client, oracle: pa.Table) -> None:
    table = oracle.set_column(1, "hit_id", pa.array(range(10**6, 10**6 + oracle.num_rows)))
    document = alice.post(SUBMIT, content=parquet(table)).text
    assert "particle" not in document


@pytest.mark.parametrize("repo", ["no-slash", "a/b/c", "../x", "a/" + "b" * 300, "a b/c", "a/b\n"])
def test_an_invalid_model_repo_is_rejected(alice: httpx.Client, oracle: pa.Table, repo: str) -> None:
    answer = alice.post(SUBMIT, params={"model_repo": repo}, content=parquet(oracle))
    assert answer.status_code == 422
    assert scores_of(alice) == []


def test_a_truncated_request_leaves_nothing(platform: ServerProcess, alice: httpx.Client) -> None:
    address = urlsplit(platform.base_url)
    token = alice.headers["Authorization"]
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        head = (
            f"POST {SUBMIT} HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Length: 1000000\r\n\r\n"
        )
        connection.sendall(head.encode() + b"PAR1" + b"\0" * 100_000)
        uploads = platform.data_dir / "uploads"
        eventually(lambda: bool(files_below(uploads)))
    eventually(lambda: not files_below(uploads))
    assert scores_of(alice) == []
