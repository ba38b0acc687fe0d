"""``collidium model``: the commands, on the packaged events."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_LZMA, ZipFile

import pyarrow.parquet as pq
import pytest
from tests.core.inference.toy_models import JETS

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.inference import timing
from collidium.testing.server import run_command
from collidium_tasks.jets.baselines.deepsets import reconstruct

#: The time of a busy machine is another one's code, with exit status 3.
REFUSED = 3


def collidium(*words: object, directory: Path) -> subprocess.CompletedProcess[str]:
    return run_command(list(map(str, words)), os.environ, directory)


@pytest.fixture
def deepsets(tmp_path: Path) -> Path:
    done = collidium("model", "example", "jets", "deepsets", "--output", tmp_path, directory=tmp_path)
    assert done.returncode == 0, done.stderr
    return tmp_path / "model.onnx"


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_model_is_checked_run_and_scored(deepsets: Path, tmp_path: Path) -> None:
    facts = answer(collidium("model", "check", deepsets, "--json", directory=tmp_path))
    assert facts["n_params"] == 18_731
    assert answer(collidium("model", "count", deepsets, "--json", directory=tmp_path))["n_params"] == 18_731
    made = answer(collidium("model", "run", deepsets, "--from", JETS, "--json", directory=tmp_path))
    assert made == {"task": "jets", "events": "0:40", "rows": 139, "predictions": "predictions.parquet"}
    scored = answer(
        collidium("score", "jets", "predictions.parquet", "--from", JETS, "--json", directory=tmp_path)
    )
    assert 0.8 < scored["scores"]["btag_auc"] <= 1


def test_a_model_is_timed(deepsets: Path, tmp_path: Path) -> None:
    words = ("model", "time", deepsets, "--from", JETS, "--events", "0:4", "--blocks", 1, "--json")
    done = collidium(*words, directory=tmp_path)
    if done.returncode == REFUSED:
        assert json.loads(done.stderr)["errors"][0]["code"] in ("noisy", "hidden_work")
        return
    timed = answer(done)
    assert timed["events"] == 4
    assert timed["seconds"] == pytest.approx(sum(timed["blocks"][0]["seconds"]) / 4)
    assert timing.BLOCKS == 3


def test_a_rejected_model_has_a_code(deepsets: Path, tmp_path: Path) -> None:
    deepsets.write_bytes(deepsets.read_bytes()[:-9])
    done = collidium("model", "check", deepsets, "--json", directory=tmp_path)
    assert done.returncode == REFUSED
    assert json.loads(done.stderr)["errors"][0]["code"] == "not_onnx"


def test_an_estimator_is_exported(tmp_path: Path) -> None:
    (tmp_path / "my_training.py").write_text(
        "import numpy as np\n"
        "from sklearn.ensemble import HistGradientBoostingClassifier\n"
        "x = np.random.default_rng(1).normal(size=(300, 22)).astype(np.float32)\n"
        "trees = HistGradientBoostingClassifier(max_iter=3).fit(x, np.arange(300) % 3)\n"
    )
    (tmp_path / "manifest.toml").write_text(
        'contract = 1\ntask = "jets"\nbatch = "events"\n[inputs]\n'
        'x = { source = "features/trees", dtype = "float32" }\n[outputs]\n'
        'probabilities = ["prob_light", "prob_c", "prob_b"]\n'
    )
    facts = answer(
        collidium("model", "export", "my_training:trees", "manifest.toml", "--json", directory=tmp_path)
    )
    assert facts["operators"] == {"ai.onnx.ml.TreeEnsembleClassifier": 1}
    made = answer(collidium("model", "run", "model.onnx", "--from", JETS, "--json", directory=tmp_path))
    assert made["rows"] == 139


@pytest.mark.packages("jax2onnx")  # `tox -e jax`
def test_a_jax_function_is_exported(tmp_path: Path) -> None:
    """The deep sets of the baseline, as JAX trained them: they predict what NumPy does."""
    (tmp_path / "my_training.py").write_text(
        "import jax\n"
        "from collidium_tasks.jets.baselines import deepsets\n"
        "weights = {name: array.astype('f4') for name, array in deepsets.weights().items()}\n"
        "def deep_set(tracks):\n"
        "    own, seen = tracks[..., :-1], tracks[..., -1]\n"
        "    return jax.nn.softmax(deepsets.outputs(weights, own, seen))\n"
    )
    (tmp_path / "manifest.toml").write_text(
        'contract = 1\ntask = "jets"\nbatch = "events"\n[inputs]\n'
        'tracks = { source = "features/tracks", dtype = "float32" }\n[outputs]\n'
        'probabilities = ["prob_light", "prob_c", "prob_b"]\n'
    )
    words = ("my_training:deep_set", "manifest.toml", "--json")
    answer(collidium("model", "export", *words, directory=tmp_path))
    answer(collidium("model", "run", "model.onnx", "--from", JETS, "--json", directory=tmp_path))
    ((_, tables),) = Dataset(JETS).read(("jets", "tracks"), EventRange(0, 40))
    own = reconstruct(tables)
    made = pq.read_table(tmp_path / "predictions.parquet")
    for name in ("prob_b", "prob_c", "prob_light"):
        assert made[name].to_pylist() == pytest.approx(own[name].to_pylist(), abs=1e-6)


def test_examples_are_listed(tmp_path: Path) -> None:
    listed = answer(collidium("model", "example", "tracking", "--json", directory=tmp_path))
    assert listed["examples"] == ["labels", "edges"]
    assert listed["rows"] == "tracker_hits"
    assert listed["postprocess"] == ["components"]
    assert collidium("model", "example", "tracking", "helix", directory=tmp_path).returncode == REFUSED


@pytest.mark.parametrize("method", [ZIP_DEFLATED, ZIP_LZMA])
def test_a_damaged_bundle_is_rejected(method: int, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.zip"
    with ZipFile(bundle, "w", method) as written:
        written.writestr("model.onnx", bytes(1000))
    # After the header and the name of the file.
    bundle.write_bytes(bundle.read_bytes()[:40] + b"\xff" * 8 + bundle.read_bytes()[48:])
    done = collidium("model", "reproduce", bundle, "--from", JETS, directory=tmp_path)
    assert (done.returncode, "is not a bundle" in done.stderr) == (REFUSED, True), done.stderr
