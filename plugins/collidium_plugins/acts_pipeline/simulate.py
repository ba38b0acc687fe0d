"""Stage ``simulate``: what the particles do in the tracker and in the calorimeters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from collidium_plugins.acts_pipeline import calorimeter, seeds
from collidium_plugins.acts_pipeline.calorimeter.table import to_table as calo_hits
from collidium_plugins.acts_pipeline.events import GeneratedEvent, SimulatedEvent, from_table, to_table
from collidium_plugins.acts_pipeline.generate import GENERATED
from collidium_plugins.acts_pipeline.order import Order
from collidium_plugins.acts_pipeline.phase import ChunkPhase, Phase

if TYPE_CHECKING:
    from collidium_plugins.acts_pipeline.detector.simulation import Simulation

#: Crossings of the tracker's modules, and the hosted table of the calorimeters.
SIMULATED: Final = "simulated"
DEPOSITS: Final = "deposits"


class Simulate(ChunkPhase):
    """Tracker and calorimeters, chunk by chunk."""

    name = "events"
    sources = (GENERATED,)
    targets = (SIMULATED, DEPOSITS)

    def make(self, events: range, sources: Sequence[pa.Table]) -> Sequence[pa.Table]:
        generated = from_table(sources[0], GeneratedEvent)
        made = [self._simulation.simulate(event, self.order.seed) for event in generated]
        deposits = [
            calorimeter.deposits(event.particles, event.ends, self._random(event.event_id)) for event in made
        ]
        return [to_table(made, SimulatedEvent), calo_hits(events, deposits)]

    def _random(self, event_id: int) -> np.random.Generator:
        order = self.order
        return seeds.generator("calorimeter", order.channel, order.pileup, order.seed, event_id)

    @cached_property
    def _simulation(self) -> Simulation:
        # ACTS is loaded where it works: not by a parent of workers, nor by the stages after this one.
        from collidium_plugins.acts_pipeline.detector import geometry
        from collidium_plugins.acts_pipeline.detector.simulation import Simulation

        return Simulation(geometry.build())


def phases(order: Order) -> list[Phase]:
    """What the stage does."""
    return [Simulate(order)]
