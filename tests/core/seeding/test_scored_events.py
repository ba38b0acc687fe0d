"""Seeding publishes no event with its truth that a task with hidden truth is scored on."""

from __future__ import annotations

from pathlib import Path

import pytest

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.scoring.truth import sketches
from collidium.seeding.plan import SIZES, DatasetPlan, copy_events


def copied(one: DatasetPlan, directory: Path) -> tuple[Dataset, EventRange]:
    assert isinstance(one.source, Path)
    places = EventRange(one.first_taken, one.first_taken + one.events)
    dataset = Dataset(copy_events(one.source, directory / one.name, places, one.config), one.config)
    ids = dataset.table(dataset.configs()[one.config][0]).event_ids
    return dataset, EventRange(int(min(ids)), int(max(ids)) + 1)


def test_demo_datasets_share_no_scored_events(tmp_path: Path) -> None:
    """By content. The name of another dataset would reveal the channel of an event of the mix, too."""
    made = {one.name: copied(one, tmp_path) for one in SIZES["demo"].datasets}
    assert {"jets-train", "odd-train"} < made.keys()
    for one in (one for one in SIZES["demo"].datasets if one.evaluated):
        dataset, events = made[one.name]
        path = tmp_path / f"{one.name}.sketches"
        sketches.write(path, dataset, sketches.hashed_tables(dataset, events), events, "secret")
        scored = sketches.Sketches.open(path)
        for name, (other, ids) in made.items():
            hashes = sketches.hashes_of_events(other, sketches.hashed_tables(other, ids), ids)
            assert any(map(scored.has, hashes)) == (name == one.name)


@pytest.mark.parametrize("size", SIZES)
def test_evaluation_sets_have_training_sets_of_other_events(size: str) -> None:
    """Without one, `collidium start` would train on packaged events, which may be those that are scored."""
    datasets = {one.name: one for one in SIZES[size].datasets}
    for one in datasets.values():
        assert not one.evaluated or not datasets[one.train].evaluated
