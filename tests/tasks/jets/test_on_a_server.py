"""The task on a real server: a bad file leaves nothing but a list of its problems; a good one is scored."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from math import inf, nan
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collidium.datasets.writing import write_dataset
from collidium.testing.server import ServerProcess

from .events import FLAVOURS, TASK, tables, truth

TABLES = tables(FLAVOURS * 4, first=0)
JETS = truth(FLAVOURS * 4, first=0)["jets"]
PROBABILITIES = ("prob_b", "prob_c", "prob_light")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    source = tmp_path_factory.mktemp("events")
    write_dataset(source, "ttbar_pu0", [TABLES], events_per_shard=8)
    with ServerProcess(tmp_path_factory.mktemp("site")) as server:
        imported = server.run("truth", "import", "jets", "--from", str(source), "--events", "0:20")
        assert imported.returncode == 0, imported.stderr
        yield server


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {server.add_user('bea')}"}
    with httpx.Client(base_url=server.base_url, headers=headers, timeout=60, trust_env=False) as client:
        yield client


def answer() -> dict[str, Any]:
    """Columns of a valid answer."""
    count = JETS.num_rows
    b = np.linspace(0.1, 0.9, count).astype(np.float32)
    columns = {"prob_b": b, "prob_c": np.full(count, 0.05, np.float32), "prob_light": 0.95 - b}
    return {name: JETS.column(name).to_numpy().copy() for name in ("event_id", "jet_id")} | columns


def file(columns: dict[str, Any]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue()


def spoilt(**rows: Any) -> bytes:
    """The answer with these values in the first rows of columns."""
    columns = answer()
    for name, values in rows.items():
        columns[name][: len(values)] = values
    return file(columns)


def without(*names: str) -> bytes:
    return file({name: column for name, column in answer().items() if name not in names})


def retyped(**kinds: pa.DataType) -> bytes:
    table = pa.table(answer())
    for name, kind in kinds.items():
        table = table.set_column(table.column_names.index(name), name, table.column(name).cast(kind))
    return file({name: table.column(name) for name in table.column_names})


def with_null(name: str) -> bytes:
    columns = answer()
    return file(columns | {name: pa.array(columns[name], mask=np.arange(len(columns[name])) == 3)})


#: What is sent -> the columns of which problems are reported, all at once.
BAD: dict[str, tuple[Callable[[], bytes], set[str]]] = {
    "a jet that is not there": (lambda: spoilt(jet_id=[9]), {"jet_id"}),
    "a jet twice": (lambda: spoilt(jet_id=[1]), {"jet_id"}),
    "a jet of an event without jets": (lambda: spoilt(event_id=[2]), {"jet_id"}),
    "an event that is not asked for": (lambda: spoilt(event_id=[20]), {"event_id"}),
    "probabilities out of bounds": (
        lambda: spoilt(prob_b=[-0.1], prob_c=[1.1], prob_light=[2.0]),
        set(PROBABILITIES),
    ),
    "sums that are not one": (
        lambda: spoilt(prob_b=[0.5, 0.5], prob_c=[0.5, 0.4], prob_light=[0.5, 0.05]),
        {"prob_b"},
    ),
    "everything zero": (lambda: spoilt(**{name: [0.0] for name in PROBABILITIES}), {"prob_b"}),
    "numbers that are none": (
        lambda: spoilt(prob_b=[nan], prob_c=[inf], prob_light=[-inf]),
        set(PROBABILITIES),
    ),
    "nulls": (lambda: with_null("prob_light"), {"prob_light"}),
    "null ids": (lambda: with_null("jet_id"), {"jet_id"}),
    "ids of floats": (lambda: retyped(jet_id=pa.float64()), {"jet_id"}),
    "texts": (lambda: retyped(prob_b=pa.string(), jet_id=pa.string()), {"prob_b", "jet_id"}),
    "columns that are missing": (lambda: without("prob_c", "jet_id"), {"prob_c", "jet_id"}),
    "a column too many": (lambda: file(answer() | {"flavour": JETS.column("flavour")}), {"flavour"}),
    "no row": (lambda: file({name: column[:0] for name, column in answer().items()}), set()),
    "more rows than jets": (lambda: file({n: np.concatenate([c, c]) for n, c in answer().items()}), set()),
    "several at once": (
        lambda: spoilt(jet_id=[9, 9, 2], prob_b=[0.9, 0.9, 0.9], prob_c=[0.9, 0.9, 0.9]),
        {"jet_id", "prob_b"},
    ),
}


def test_bad_files_are_rejected_with_all_problems_and_not_kept(
    server: ServerProcess, client: httpx.Client
) -> None:
    wrong = {}
    for endpoint in ("check", "submit"):
        for name, (made, columns) in BAD.items():
            response = client.post(f"/v1/benchmark/jets/{endpoint}", content=made())
            found = {problem.get("column") for problem in response.json().get("errors", [])} - {None}
            if response.status_code != 422 or found != columns:
                wrong[name, endpoint] = (response.status_code, response.json())
    assert not wrong, wrong
    assert [place["hub_username"] for place in client.get("/v1/leaderboard/jets").json()] == []
    assert [*(server.data_dir / "storage").rglob("*.parquet")] == []


def test_an_answer_is_scored_and_paid(server: ServerProcess, client: httpx.Client, tmp_path: Path) -> None:
    best = TASK.oracle({"jets": JETS})
    receipt = client.post(
        "/v1/benchmark/jets/submit", content=file({n: best.column(n) for n in best.column_names})
    ).json()
    assert receipt["scores"] == {"btag_auc": 1.0}, "no rejection where no jet passes"
    assert receipt["credits_earned"] == 50
    assert set(receipt["uncertainties"]) == set(receipt["scores"])
    some = {name: column[:10] for name, column in answer().items()}
    assert (
        "30 of 40 jets were not submitted" in client.post("/v1/benchmark/jets/check", content=file(some)).text
    )
