"""Baselines that learn: the same file from the same events, NumPy in place of JAX, weights that are good."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow.parquet as pq
import pytest

import collidium
from collidium.contracts.task import Tables
from collidium.datasets import load, sample
from collidium.errors import ConfigurationError, UnusableDataset
from collidium.learning import EventStream
from collidium.testing.server import run_command
from collidium_tasks.anomaly import learned
from collidium_tasks.anomaly.baselines import MIX, NAMES
from collidium_tasks.common import Read
from collidium_tasks.jets import JetsTask
from collidium_tasks.jets.baselines import deepsets
from collidium_tasks.networks import Schedule, loaded
from collidium_tasks.tracking.baselines import edges
from collidium_tasks.training import read_blocks, train_baseline

JETS, ANOMALY = (sample.DIRECTORY.parent / name for name in ("jets", "anomaly"))
TINY = Schedule(epochs=2, batch=16)


def read(dataset: str, tables: Sequence[str], events: int | None = None) -> Iterator[Tables]:
    """The packaged events in place of all training sets."""
    directory = {("jets", "tracks"): JETS, ("tracker_hits",): sample.DIRECTORY}.get(tuple(tables), ANOMALY)
    return read_blocks(directory, tables, events)


@pytest.mark.parametrize(
    "train",
    [
        lambda read: deepsets.train(read, TINY),
        learned.train_mixture,
        learned.train_weak,
        lambda read: edges.train(read, TINY),
    ],
    ids=["deepsets", "mixture", "weak", "edges"],
)
def test_training_twice_makes_the_same_file(train: Callable[[Read], bytes]) -> None:
    first = train(read)
    assert train(read) == first
    assert all(np.isfinite(values).all() for values in loaded(first).values())


def test_numpy_computes_what_jax_computes() -> None:
    import jax

    tracks, seen = deepsets.inputs(load(JETS, tables=["jets", "tracks"]))
    ours = deepsets.outputs(deepsets.weights(), tracks, seen)
    with jax.enable_x64():
        theirs = deepsets.outputs(*jax.tree.map(jax.numpy.asarray, (deepsets.weights(), tracks, seen)))
    assert len(ours) > 100
    assert np.abs(ours - np.asarray(theirs)).max() < 1e-6


def test_shipped_tagger_is_a_good_one() -> None:
    """On packaged events, of another seed than those it has learned from."""
    predictions = deepsets.reconstruct(load(JETS, tables=["jets", "tracks"]))
    made = collidium.score("jets", predictions, truth_from=JETS)
    assert 0.9 < made.scores["btag_auc"] < 0.99


def test_shipped_anomaly_scores_find_signals() -> None:
    (batch,) = EventStream(MIX, tables="features", batch=10_000)
    x = np.stack([batch[name].values for name in NAMES], axis=1)[:, learned.CHOSEN]
    for score in (
        -learned.log_density(learned.weights(learned.MIXTURE), x),
        learned.mixness(learned.weights(learned.WEAK), x),
    ):
        predictions = {"event_id": batch.event_id, "anomaly_score": score}
        assert 0.9 < collidium.score("anomaly", predictions, truth_from=MIX).scores["auroc"] < 0.99


def test_command_writes_the_file_of_the_training_set(
    tmp_path: Path, isolated_environment: dict[str, str]
) -> None:
    """Trees ship their training jets, so that these are what is written."""
    shutil.copytree(JETS, tmp_path / "events" / "ttbar-train")
    command = ("train-baseline", "jets/trees", "--from", "events", "--output", "jets.npz")
    done = run_command(command, isolated_environment, tmp_path)
    assert done.returncode == 0, done.stderr
    jets = pq.read_table(JETS / "jets.parquet")["flavour"].combine_chunks().flatten()
    assert loaded((tmp_path / "jets.npz").read_bytes())["flavour"].tolist() == jets.to_pylist()


@pytest.mark.parametrize("problem", ["no events to learn from", "table jets has no flavour to learn from"])
def test_what_cannot_be_learned_from_is_named(tmp_path: Path, problem: str) -> None:
    (tmp_path / "ttbar-train").mkdir()
    for file in JETS.glob("*.parquet"):
        table = pq.read_table(file)
        if "events" in problem:
            table = table.slice(0, 0)
        elif "flavour" in table.column_names:
            table = table.drop_columns(["flavour"])
        pq.write_table(table, tmp_path / "ttbar-train" / file.name)
    with pytest.raises(UnusableDataset, match=problem):
        train_baseline.main(
            ["jets/trees", "--from", str(tmp_path), "--output", str(tmp_path / "o")], standalone_mode=False
        )


def test_without_the_extra_training_names_the_command(tmp_path: Path) -> None:
    output = tmp_path / "deepsets.npz"
    with (
        patch("collidium_tasks.training.find_spec", return_value=None),
        pytest.raises(ConfigurationError, match=re.escape("pip install 'collidium[baselines]'")),
    ):
        train_baseline.main(["jets/deepsets", "--output", str(output)], standalone_mode=False)
    assert not output.exists()


def test_model_files_are_what_baselines_load() -> None:
    files = JetsTask().model_files("deepsets")
    assert {name: len(loaded(content)) for name, content in files.items()} == {
        "deepsets.npz": len(deepsets.weights())
    }
    assert JetsTask().model_files("impact") == {}
