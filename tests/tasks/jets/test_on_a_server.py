"""The task on a real server: an answer is scored and paid. Bad files are the core's, and of test_task.py."""

from __future__ import annotations

import io
from collections.abc import Iterator
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
