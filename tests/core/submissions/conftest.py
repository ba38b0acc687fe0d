"""Makes the toy task of the scoring tests importable as ``toy_task``; a platform with an open task."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.sandboxes import allowance

from collidium.challenges import truth_in_use
from collidium.challenges.models import Challenge
from collidium.contracts.task import EventRange
from collidium.demo import EVENTS_DIRECTORY
from collidium.platform import Platform

from . import models

sys.path.append(str(Path(__file__).parents[1] / "scoring"))


@pytest.fixture
async def platform(migrated_database_url: str, tmp_path: Path) -> AsyncIterator[Platform]:
    """A platform that scores tracking on events 3 and 4 of the package, without a hub."""
    chosen = {
        "database_url": migrated_database_url,
        "data_dir": tmp_path / "data",
        "hub_url": "http://127.0.0.1:9",
        "model_unconfined": bool(allowance()),
    }
    async with models.opened(chosen) as platform:
        await truth_in_use.import_truth(
            platform, "tracking", str(EVENTS_DIRECTORY), config="ttbar_pu0", events=EventRange(3, 5)
        )
        await Challenge.filter(name="tracking").update(listed=True)
        yield platform
