"""Stage ``generate``: hard scatter, parton shower and pileup, from a channel to ``generated/``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium_plugins.acts_pipeline import files
from collidium_plugins.acts_pipeline.events import to_table
from collidium_plugins.acts_pipeline.generation import pileup
from collidium_plugins.acts_pipeline.generation.channels import MINIMUM_BIAS
from collidium_plugins.acts_pipeline.generation.events import Generator
from collidium_plugins.acts_pipeline.generation.pool import Pool, collisions
from collidium_plugins.acts_pipeline.generation.pythia import Pythia
from collidium_plugins.acts_pipeline.order import Order
from collidium_plugins.acts_pipeline.phase import ChunkPhase, Phase

GENERATED: Final = "generated"
_POOL: Final = "pool"
#: Collisions that are generated in one go.
_COLLISIONS: Final = 250


class Collisions(Phase):
    """The collisions of the pool that the order needs, into ``pool/``."""

    name = "collisions"

    def __init__(self, order: Order) -> None:
        self._order = order
        self._folder = order.folder(_POOL)

    @property
    def sizes(self) -> list[int]:
        return [len(self._slice(task)) for task in range(-(-len(self._members) // _COLLISIONS))]

    def is_done(self, task: int) -> bool:
        return self._path(task).exists()

    def do(self, task: int) -> None:
        made = collisions(self._pythia, self._order.seed, self._slice(task).tolist())
        files.write(self._path(task), made, compress=False)

    @cached_property
    def _members(self) -> npt.NDArray[np.int64]:
        order = self._order
        ids = range(order.first_event, order.first_event + order.events)
        return pileup.members(order.channel, order.pileup, order.seed, ids)

    @cached_property
    def _pythia(self) -> Pythia:
        return Pythia(MINIMUM_BIAS)

    def _slice(self, task: int) -> npt.NDArray[np.int64]:
        return self._members[task * _COLLISIONS : (task + 1) * _COLLISIONS]

    def _path(self, task: int) -> Path:
        return self._folder / f"collisions-{task:05}.arrow"


class Generate(ChunkPhase):
    """The events, chunk by chunk."""

    name = "events"
    targets = (GENERATED,)

    def make(self, events: range, sources: Sequence[pa.Table]) -> Sequence[pa.Table]:
        return [to_table(self._generator.generate(event_id) for event_id in events)]

    @cached_property
    def _generator(self) -> Generator:
        order = self.order
        pool = Pool(sorted(order.folder(_POOL).glob("*.arrow"))) if order.pileup else None
        return Generator(order.channel, order.pileup, order.seed, pool)


def phases(order: Order) -> list[Phase]:
    """What the stage does, in this order."""
    return [*([Collisions(order)] if order.pileup else []), Generate(order)]
