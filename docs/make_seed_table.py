"""Writes the table of docs/seed.md from what `collidium seed` plans: ``python docs/make_seed_table.py``."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from collidium.challenges.tasklist import open_platform
from collidium.cli.seed import SIZES, planned
from collidium.platform import Platform
from collidium.presentation.quantities import duration_text
from collidium.seeding import checks, plan
from collidium.seeding.access import SeedState
from collidium.seeding.steps import Seeding
from collidium.settings import Settings

PAGE: Final = Path(__file__).with_name("seed.md")
#: Cores of a small server.
CORES: Final = 2

_HEAD: Final = f"""\
| size | training sets, events | evaluation sets, events | disk, at most | time on {CORES} idle cores, about |
|---|---|---|---|---|
"""
_MARK: Final = "<!-- Written by docs/make_seed_table.py; do not edit. -->\n"
_TABLE: Final = re.compile(rf"(?<={_MARK}).*?(?=\n\n)", re.DOTALL)


def seed_page() -> str:
    """The whole page, with the table as it is now."""
    table = _HEAD + "\n".join(asyncio.run(_rows()))
    return _TABLE.sub(lambda _: table, PAGE.read_text())


async def _rows() -> list[str]:
    with TemporaryDirectory() as directory:
        async with open_platform(
            Settings(data_dir=Path(directory), hub_url="http://127.0.0.1:8000/hub")
        ) as platform:
            return [_row(size, _plan(platform, size)) for size in SIZES]


def _plan(platform: Platform, size: str) -> dict[str, Any]:
    state = SeedState.open(platform.settings.data_dir, size)
    tasks = checks.tasks_of(platform, [])
    return planned(Seeding(platform, plan.SIZES[size], tasks, state, True, lambda *_: None, cores=CORES))


def _row(size: str, record: dict[str, Any]) -> str:
    sets = [
        "; ".join(_set(one) for one in record["datasets"] if one["scored"] == scored)
        for scored in (False, True)
    ]
    disk, time = f"{record['bytes'] / 1e9:.1f} GB", duration_text(record["seconds"])
    return f"| `{size}` | {' | '.join(sets)} | {disk} | {time} |"


def _set(one: dict[str, Any]) -> str:
    channels = len(one["channels"])
    of = f", {channels} channels of {one['events'] // channels:,}" if channels > 1 else ""
    return f"{one['dataset']} {one['events']:,}{of}"


if __name__ == "__main__":
    PAGE.write_text(seed_page())
