"""A toy task, its truth, and an executor for the tests of the engine."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from collidium.contracts.executor import Limits
from collidium.datasets import Dataset
from collidium.scoring import engine
from collidium.scoring.truth.importing import Origin, build
from collidium.scoring.truth.versions import Truth
from collidium_plugins.executor_processes import Processes

# Worker processes import the toy task by its name, as they import an installed task.
sys.path.append(str(Path(__file__).parent))

import toy_task

# Its workers are used again, as those of built-in tasks: that is ten times as fast.
engine.OWN_PACKAGES.add("toy_task")

LIMITS = Limits(memory_bytes=1024**3, seconds=60)


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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def truth(executor: Processes, dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Truth:
    """The toy's truth, a block for every event or two."""
    return await build(
        toy_task.Toy(),
        dataset,
        origin=Origin("toy", "1"),
        directory=tmp_path_factory.mktemp("truth"),
        executor=executor,
        limits=LIMITS,
        block_rows=40,
    )
