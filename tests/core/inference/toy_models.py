"""Small models of the task jets, in the text form of ONNX, with their manifests."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from collidium import plugins
from collidium.contracts.task import EventRange, Task
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.inference.manifest import read_manifest
from collidium.inference.running import Model, tables_of
from collidium_tasks.networks import graph

JETS = EVENTS_DIRECTORY.parent / "jets"


def task(name: str) -> Task:
    return plugins.load().tasks().find(name)


def manifest(
    inputs: str, *, batch: str = "events", outputs: str = 'p = ["prob_b", "prob_c", "prob_light"]'
) -> str:
    return f'contract = 1\ntask = "jets"\nbatch = "{batch}"\n[inputs]\n{inputs}\n[outputs]\n{outputs}\n'


def model(inputs: str, text: str, *, batch: str = "events", **constants: Any) -> Model:
    """A model of jets with these inputs of its manifest, and this graph."""
    made = graph(text, **{name: np.asarray(value) for name, value in constants.items()})
    return Model(made, read_manifest(manifest(inputs, batch=batch).encode(), task("jets")))


@cache
def example(name: str, which: str) -> Model:
    files = task(name).model_examples()[which]()
    return Model(files["model.onnx"], read_manifest(files["manifest.toml"], task(name)))


def events(made: Model, directory: Any = JETS, *, last: int = 40) -> dict[str, pa.Table]:
    ((_, tables),) = Dataset(directory).read(tables_of(made, task(made.manifest.task)), EventRange(0, last))
    return dict(tables)
