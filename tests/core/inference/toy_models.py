"""Small models of the task jets from ONNX text, with their manifests."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from collidium import plugins
from collidium.contracts.task import EventRange, Task
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.inference.manifest import read_manifest
from collidium.inference.messages import InputSpec, OutputSpec
from collidium.inference.running import Model, tables_of
from collidium.inference.sandbox import CallBatch, Interface
from collidium_tasks.networks import graph

JETS = EVENTS_DIRECTORY.parent / "jets"
#: The interface of models with an input ``x`` and an output ``y``, and a batch for them.
INTERFACE = Interface([InputSpec("x", "float32", (4,))], [OutputSpec("y", 1, is_integer=False)])
BATCH = CallBatch(3, [np.arange(12, dtype=np.float32).reshape(3, 4)])


class Interruption:
    """An ``on_wait`` of a sandbox that raises InterruptedError at its fifth call after it was armed."""

    armed = False
    calls = 0

    def __call__(self) -> None:
        self.calls += self.armed
        if self.calls == 5:
            raise InterruptedError


def task(name: str) -> Task:
    return plugins.load().tasks().find(name)


def manifest(inputs: str) -> str:
    outputs = 'p = ["prob_b", "prob_c", "prob_light"]'
    return f'contract = 1\ntask = "jets"\nbatch = "events"\n[inputs]\n{inputs}\n[outputs]\n{outputs}\n'


def model(inputs: str, text: str, **constants: Any) -> Model:
    """A model of jets with these inputs in its manifest, and a graph that may use some of the constants."""
    used = constants.keys() & set(re.findall(r"\w+", text))
    made = graph(text, **{name: np.asarray(constants[name]) for name in sorted(used)})
    return Model(made, read_manifest(manifest(inputs).encode(), task("jets")))


@cache
def example(name: str, which: str) -> Model:
    files = task(name).model_examples()[which]()
    return Model(files["model.onnx"], read_manifest(files["manifest.toml"], task(name)))


def events(made: Model, directory: Any = JETS, *, last: int = 40) -> dict[str, pa.Table]:
    ((_, tables),) = Dataset(directory).read(tables_of(made, task(made.manifest.task)), EventRange(0, last))
    return dict(tables)
