"""A toy task, its truth, and an executor for the tests of the engine."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from collidium.datasets import Dataset
from collidium.scoring import engine
from collidium.scoring.engine import ScoringResult, evaluate
from collidium.scoring.truth.importing import Origin, build
from collidium.scoring.truth.versions import Truth
from collidium_plugins.executor_processes import Processes

# Worker processes import the toy task by its name, as they import an installed task.
sys.path.append(str(Path(__file__).parent))

import toy_task
from toy_task import LIMITS

# Its workers are used again, as those of built-in tasks: that is ten times as fast.
engine.OWN_PACKAGES.add("toy_task")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def executor() -> AsyncIterator[Processes]:
    executor = Processes(2)
    yield executor
    await executor.close()


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    directory = tmp_path_factory.mktemp("toy-dataset")
    toy_task.write_dataset(directory)
    return Dataset(directory)


@pytest.fixture(scope="module")
def make(executor: Processes, dataset: Dataset) -> toy_task.Make:
    """Prepares truth of the toy, or of the given task or dataset, below a directory."""

    async def make(directory: Path, *, task: Any = None, of: Dataset | None = None, **options: Any) -> Truth:
        given: Any = {"origin": Origin("toy_pu0", "abc"), "executor": executor, "limits": LIMITS} | options
        return await build(task or toy_task.Toy(), of or dataset, directory=directory, **given)

    return make


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def truth(make: toy_task.Make, tmp_path_factory: pytest.TempPathFactory) -> Truth:
    """The toy's truth, a block for every event or two."""
    return await make(tmp_path_factory.mktemp("truth"), block_rows=40)


@pytest.fixture
def score(executor: Processes, truth: Truth) -> toy_task.Score:
    """Scores a file by the toy that reports its tally, or the given task, against its or other truth."""

    async def score(
        path: Path, task: Any = None, against: Truth | None = None, **options: Any
    ) -> ScoringResult:
        given: Any = {"executor": executor, "limits": LIMITS} | options
        return await evaluate(task or toy_task.Telling(), against or truth, path, **given)

    return score
