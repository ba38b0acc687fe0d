"""A stream with grain's transformations and checkpoints. Needs grain: `tox -e torch`."""

from __future__ import annotations

from pathlib import Path

from collidium.demo import EVENTS_DIRECTORY
from collidium.learning import EventStream
from collidium.learning.grain import EventDataset


def dataset(directory: Path = EVENTS_DIRECTORY) -> EventDataset:
    return EventDataset(EventStream(directory, None, "tracks", ["d0"], batch=1, shuffle=True, seed=3))


def test_grain_transforms_batches_and_resumes() -> None:
    numbers = dataset().map(lambda tree: int(tree["event_id"][0]))
    every = list(numbers)
    assert sorted(every) == list(range(5))
    one = iter(numbers)
    seen = [next(one), next(one)]
    state = one.get_state()
    other = iter(dataset().map(lambda tree: int(tree["event_id"][0])))
    other.set_state(state)
    assert seen + list(other) == every
