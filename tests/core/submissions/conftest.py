"""Makes the toy task of the scoring tests importable as ``toy_task``; a platform with an open task."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cache
from pathlib import Path
from shutil import copy2, copytree
from typing import Any

import pytest
from tests.sandboxes import allowance

from collidium.challenges import truth_in_use
from collidium.challenges.models import Challenge
from collidium.contracts.task import EventRange
from collidium.demo import EVENTS_DIRECTORY
from collidium.platform import Platform
from collidium.testing.databases import Databases, required_settings

from . import models

sys.path.append(str(Path(__file__).parents[1] / "scoring"))

#: ``prepared(directory, *tasks)``: settings of a platform there whose tasks are open, with imported truth.
Prepared = Callable[..., AbstractContextManager[dict[str, Any]]]


@pytest.fixture(scope="session")
def prepared(_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    """The truth is imported once, as that starts a scoring process; each test gets a copy."""
    with ExitStack() as templates:

        @cache
        def template(tasks: tuple[str, ...]) -> tuple[str, Path]:
            url = templates.enter_context(_databases.migrated())
            data_dir = tmp_path_factory.mktemp("prepared") / "data"
            with _variables_of(url), ThreadPoolExecutor(1) as thread:
                thread.submit(lambda: asyncio.run(_import(_chosen(url, data_dir), tasks))).result()
            return url, data_dir

        @contextmanager
        def copied(directory: Path, *tasks: str) -> Iterator[dict[str, Any]]:
            original, data_dir = template(tasks)
            with _databases.copy(original) as url, _variables_of(url):
                _copy(data_dir, directory / "data")
                yield _chosen(url, directory / "data")

        yield copied


def _copy(original: Path, directory: Path) -> None:
    """Copy a folder. Links stay links: copies of truth are the files of the storage themselves."""
    copies: dict[int, str] = {}

    def copy(source: str, target: str) -> str:
        number = Path(source).stat().st_ino
        if number in copies:
            Path(target).hardlink_to(copies[number])
        else:
            copies[number] = copy2(source, target)
        return target

    copytree(original, directory, copy_function=copy)


@contextmanager
def _variables_of(url: str) -> Iterator[None]:
    """The settings that a database of this kind needs, set within the context."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in required_settings(url).items():
            patch.setenv(name, value)
        yield


def _chosen(url: str, data_dir: Path) -> dict[str, Any]:
    return {
        "database_url": url,
        "data_dir": data_dir,
        "hub_url": "http://127.0.0.1:9",
        "model_unconfined": bool(allowance()),
    }


async def _import(chosen: dict[str, Any], tasks: tuple[str, ...]) -> None:
    """Import truth of events 3 and 4."""
    async with models.opened(chosen) as platform:
        for task in tasks:
            await truth_in_use.import_truth(
                platform, task, str(EVENTS_DIRECTORY), config="ttbar_pu0", events=EventRange(3, 5)
            )
            await Challenge.filter(name=task).update(listed=True)


@pytest.fixture
async def platform(prepared: Prepared, tmp_path: Path) -> AsyncIterator[Platform]:
    """A platform that scores tracking on events 3 and 4 of the package, without a hub."""
    with prepared(tmp_path, "tracking") as chosen:
        async with models.opened(chosen) as platform:
            yield platform
