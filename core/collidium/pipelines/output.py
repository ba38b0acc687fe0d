"""From the tables of the last stage to the output directory: checked, whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from collidium import __version__
from collidium.contracts.pipeline import TABLES
from collidium.datasets import cards
from collidium.datasets.cards import CARD, DatasetFile
from collidium.datasets.output import check_output
from collidium.errors import UnusableDataset
from collidium.files.durable import sync_directory
from collidium.pipelines.production import CannotSimulate, Production
from collidium.pipelines.work import Work

_DATA: Final = "data"


def place(production: Production, work: Work) -> list[DatasetFile]:
    """Check the tables and put them into the output directory; safe to repeat. Returns what they are there.

    Raises CannotSimulate where a table does not hold exactly the events that were ordered. Blocks.
    """
    tables = work.place / TABLES
    found = [path for path in sorted(tables.iterdir()) if path.suffix == ".parquet"]
    try:
        if not found:
            raise UnusableDataset(f"the last stage left no tables in {TABLES}/")
        files = check_output(found, tables, production.order.config, production.events)
    except UnusableDataset as error:
        raise CannotSimulate(
            f"pipeline {production.pipeline.name} did not make what was ordered: {error}"
        ) from error
    if production.flat:
        return _place_flat(files, work)
    _place_data(files, work)
    described = [file for _, file in files]
    card = work.hidden / CARD
    card.write_text(dataset_card(production, described), "utf-8")
    card.replace(work.directory / CARD)
    sync_directory(work.directory)
    return described


def _place_flat(files: Sequence[tuple[Path, DatasetFile]], work: Work) -> list[DatasetFile]:
    placed = []
    for source, file in files:
        new = work.hidden / source.name
        _link(source, new)
        new.replace(work.directory / source.name)
        placed.append(DatasetFile(source.name, file.sha256, file.size_bytes, file.rows))
    sync_directory(work.directory)
    return placed


def _place_data(files: Sequence[tuple[Path, DatasetFile]], work: Work) -> None:
    """All tables appear at once, as one directory."""
    data = work.directory / _DATA
    if data.exists():
        return  # an earlier run got as far as this, and was stopped after it
    whole = work.hidden / "whole"
    shutil.rmtree(whole, ignore_errors=True)
    for source, file in files:
        target = whole / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(source, target)
    (whole / _DATA).rename(data)
    whole.rmdir()


def _link(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # a file system without links
        shutil.copyfile(source, target)


def dataset_card(production: Production, files: Sequence[DatasetFile]) -> str:
    """The ``README.md``: front matter that a hub reads, what was ordered, and by what it was made."""
    order, pipeline = production.order, production.pipeline
    events = production.events
    facts = {
        "channel": order.channel,
        "events": order.events,
        "event ids": f"{events.start} to {events.stop - 1}",
        "pileup": order.pileup,
        "seed": order.seed,
        "systematic variation": order.vary or "none",
        "pipeline": f"{pipeline.name}, version {pipeline.version}",
        **(pipeline.facts_of(order.channel)),
        **(production.lhe.facts if production.lhe else {}),
        "made with": f"Collidium {__version__}",
    }
    generated = None if production.lhe else (pipeline.channels or {}).get(order.channel)
    number = "one event" if order.events == 1 else f"{order.events:,} events"
    title = f"{order.channel}: {number} at pileup {order.pileup}"
    tags = ["collidium", "particle-physics", "simulation", order.channel]
    description = f"Collision events, simulated by the pipeline {pipeline.name}: {pipeline.title}."
    description += f" Generated: {generated}." if generated else ""
    body = f"""# {cards.text(title)}

{cards.text(description)} Each row is one
event; every column but `event_id` holds a list, with one entry for each particle, hit, deposit or track.

{cards.table(("", ""), facts.items())}

The same channel, pileup, seed and version of the pipeline give the same events again, each by its id.

## Files

{cards.file_table(files)}"""
    splits = {order.config: cards.splits(events.start, len(events))}
    return cards.card(cards.front_matter(title, tags, order.events, files, splits), body)
