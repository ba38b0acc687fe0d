"""A baseline as a model that the server runs: it scores what its own predictions do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from collidium.client import Client, write_predictions
from collidium.datasets.writing import write_dataset
from collidium.testing.server import ServerProcess
from collidium_tasks.jets import JetsTask, examples

from .events import FLAVOURS, tables

pytest.importorskip("onnxruntime")

EVENTS = 40
TABLES = tables(FLAVOURS * (EVENTS // len(FLAVOURS)), first=0)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    source = tmp_path_factory.mktemp("events")
    write_dataset(source, "ttbar_pu0", [TABLES], events_per_shard=8)
    with ServerProcess(tmp_path_factory.mktemp("site")) as server:
        imported = server.run("truth", "import", "jets", "--from", str(source), "--events", f"0:{EVENTS}")
        assert imported.returncode == 0, imported.stderr
        yield server


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The files of the baseline `deepsets`."""
    directory = tmp_path_factory.mktemp("model")
    for name, content in examples.deepsets_model().items():
        (directory / name).write_bytes(content)
    return directory / "model.onnx", directory / "manifest.toml"


def test_a_baseline_as_a_model_scores_what_its_predictions_do(
    server: ServerProcess, model: tuple[Path, Path], tmp_path: Path
) -> None:
    write_predictions(JetsTask().baselines()["deepsets"](TABLES), tmp_path / "own.parquet")
    token = server.add_user("bea")
    with Client(server.base_url, token=token) as client:
        own = client.submit("jets", tmp_path / "own.parquet")
        sent = client.submit_model("jets", *model)
        ended = client.wait_for_model(sent.evaluation_id, timeout=60)
        assert (ended.state, ended.code, ended.events_done) == ("scored", None, EVENTS)
        found = client.submission(ended.submission_id or "")
        assert client.submit_model("jets", *model).deduplicated
        assert client.quota("jets").submissions_left == 8
    assert found.scores.keys() == own.scores.keys()
    for name, value in own.scores.items():
        assert abs(found.scores[name] - value) <= max(own.uncertainties[name] / 10, 1e-6)
    assert found.model is not None
    assert (found.sha256, found.rows) == (sent.model_sha256, None)
