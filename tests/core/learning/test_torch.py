"""A real DataLoader without and with workers. Needs torch: `tox -e torch`."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.core.datasets.events import CONFIG, tables_of, write
from tests.documents import ROOT

from collidium.learning import EventStream
from collidium.learning.torch import SLOTS, EventDataset

# JAX, which other tests of the process loaded, warns of every fork; workers do not touch it.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")

EVENTS = range(200)
COLUMNS = {"tracker_hits": ["x", "particle_id"], "tracks": ["d0", "hit_ids"]}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("events"), tables_of(EVENTS, hits=40), events_per_shard=30)


def stream(directory: Path, **options: Any) -> EventStream:
    tables = ["tracker_hits", "tracks"]
    return EventStream(directory, CONFIG, tables, COLUMNS, **{"batch": 4, "shuffle": True} | options)


def contents(batches: list[Any]) -> dict[int, list[Any]]:
    """What each event has, and that it comes once."""
    found = {}
    for batch in batches:
        hits, tracks = batch["tracker_hits"], batch["tracks"]
        for number, event in enumerate(batch["event_id"].tolist()):
            assert event not in found
            own = slice(*hits["offsets"][number : number + 2].tolist())
            first, last = tracks["offsets"][number : number + 2].tolist()
            inner = tracks["hit_ids"]["offsets"][first : last + 1].tolist()
            ids = [tracks["hit_ids"]["values"][a:b].tolist() for a, b in pairwise(inner)]
            found[event] = [
                hits["x"][own].tolist(),
                hits["particle_id"][own].tolist(),
                tracks["d0"][first:last].tolist(),
                ids,
            ]
    return found


@pytest.mark.parametrize("workers", [0, 2])
def test_workers_yield_every_event_unchanged(directory: Path, workers: int) -> None:
    """More batches than there are slots, all held until the end; then two epochs in the same ones."""
    expected = contents([batch.arrays() for batch in stream(directory, shuffle=False)])
    loader = torch.utils.data.DataLoader(
        EventDataset(stream(directory)),
        batch_size=None,
        num_workers=workers,
        persistent_workers=workers > 0,
    )
    held = list(loader)
    assert len(held) > 2 * SLOTS
    assert contents(held) == expected
    del held
    orders = []
    for _ in range(2):
        seen: dict[int, list[Any]] = {}
        for batch in loader:  # given back one by one
            seen |= contents([batch])
        assert seen == expected
        orders.append(list(seen))
    assert orders[0] != orders[1]


def test_transformed_batches_are_sent_by_workers(directory: Path) -> None:
    dataset = EventDataset(
        stream(directory, shuffle=False, batch=64),
        lambda batch: {"number": len(batch), "ids": torch.from_numpy(np.array(batch.event_id))},
    )
    (first, *_) = torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=1)
    assert first["number"] == 64
    assert first["ids"].tolist() == list(range(64))


class Remembering:
    """Keeps all batches that it was given, as a transform may."""

    def __init__(self) -> None:
        self.kept: list[Any] = []

    def __call__(self, batch: Any) -> Any:
        self.kept.append(batch["tracker_hits.x"].values)
        return {"first": torch.from_numpy(self.kept[0].copy()), "own": batch.padded(40).to_torch()}


def test_a_worker_may_keep_batches(directory: Path) -> None:
    """The memory of a batch is used again only when nothing refers to it there, either."""
    loader = torch.utils.data.DataLoader(
        EventDataset(
            EventStream(directory, CONFIG, "tracker_hits", ["x"], batch=4, shuffle=True), Remembering()
        ),
        batch_size=None,
        num_workers=1,
    )
    first, *others = [batch["first"].tolist() for batch in loader]  # given back one by one
    assert len(others) > 2 * SLOTS
    assert others == [first] * len(others)


def test_the_tutorial_runs_and_its_model_learns() -> None:
    """The site is made without torch: its cells run here."""
    page = (ROOT / "docs/tutorials/loaders-with-torch.md").read_text()
    cells = re.findall(r"^```\{code-cell\}\n(?::tags: .*\n)?(.*?)^```", page, re.MULTILINE | re.DOTALL)
    exec("\n".join(cells), {})  # noqa: S102 -- our own notebook


def test_tensors_share_the_memory_of_a_batch(directory: Path) -> None:
    batch = next(iter(stream(directory)))
    tree = batch.to_torch()
    assert tree["tracks"]["d0"].data_ptr() == batch["tracks.d0"].values.ctypes.data
    assert tree["tracker_hits"]["particle_id"].dtype == torch.uint64
    (padded, *_) = (batch.padded(3) for batch in EventStream(directory, CONFIG, "tracks", ["d0"]))
    assert padded.to_torch()["tracks"]["mask"].dtype == torch.bool


def test_the_state_is_that_of_the_stream(directory: Path) -> None:
    one = EventDataset(stream(directory))
    batches = iter(one)
    next(batches)
    state = one.state_dict()
    other = EventDataset(stream(directory))
    other.load_state_dict(state)
    assert next(iter(other))["event_id"].tolist() == next(batches)["event_id"].tolist()
