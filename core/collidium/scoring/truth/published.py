"""Whether everybody can read a truth: in a public repository, or as that of events of the package."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from collidium.contracts.task import Card, EventRange
from collidium.datasets import Dataset, HubDataset
from collidium.datasets.access import catalogue
from collidium.datasets.row_hashes import Hashes
from collidium.datasets.sample import PACKAGED
from collidium.errors import CollidiumError
from collidium.scoring.truth.sketches import Sketches, hashed_tables, hashes_of_events


def is_readable(place: Path | HubDataset, cache: Path) -> bool:
    """Return whether everybody can read the dataset that truth was imported from. Blocks.

    A repository is asked for without a token.
    """
    if isinstance(place, Path):
        return False
    try:
        with catalogue(replace(place, token=""), cache, current=True):
            return True
    except CollidiumError:
        return False


def has_packaged(card: Card, sketches: Sketches) -> bool:
    """Return whether sketches have events of the package whose truth a task is scored on. Blocks.

    Compared are the public rows of all events, whatever their ids are.
    """
    packaged = (directory for directory in PACKAGED if _has_tables(directory, card))
    return any(sketches.has(hashes) for directory in packaged for hashes in _hashes(directory))


def _has_tables(directory: Path, card: Card) -> bool:
    return all((directory / f"{name}.parquet").is_file() for name in card.truth_sources)


def _hashes(directory: Path) -> Iterator[Hashes]:
    dataset = Dataset(directory)
    ids = dataset.table(next(iter(dataset.configs()[""]))).event_ids
    events = EventRange(int(min(ids)), int(max(ids)) + 1)
    yield from hashes_of_events(dataset, hashed_tables(dataset, events), events)
