"""Stage ``reconstruct``: measured hits, tracks and jets, and with them the hosted tables of each chunk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from collidium_plugins.acts_pipeline import tables
from collidium_plugins.acts_pipeline.calorimeter.flight import FIELD
from collidium_plugins.acts_pipeline.calorimeter.table import cells_of_particles
from collidium_plugins.acts_pipeline.events import SimulatedEvent, from_table
from collidium_plugins.acts_pipeline.order import Order
from collidium_plugins.acts_pipeline.phase import ChunkPhase, Phase
from collidium_plugins.acts_pipeline.simulate import DEPOSITS, SIMULATED
from collidium_plugins.jet_finder.table import jets

if TYPE_CHECKING:
    from collidium_plugins.acts_pipeline.detector.reconstruction import Reconstruction

#: The folder of each table; that of the calorimeters is made before.
RECONSTRUCTED: Final = {
    name: f"reconstructed/{name}" for name in ("particles", "tracker_hits", "tracks", "jets")
}


class Reconstruct(ChunkPhase):
    """Digitisation, tracking and jets, chunk by chunk."""

    name = "events"
    sources = (SIMULATED, DEPOSITS)
    targets = tuple(RECONSTRUCTED.values())

    def make(self, events: range, sources: Sequence[pa.Table]) -> Sequence[pa.Table]:
        simulated, deposits = sources
        made = [
            self._reconstruction.reconstruct(event, self.order.seed)
            for event in from_table(simulated, SimulatedEvent)
        ]
        cells = [cells_of_particles(deposits, row, len(event.particles)) for row, event in enumerate(made)]
        particles = tables.particles(made, cells, FIELD)
        return [particles, tables.tracker_hits(made), tables.tracks(made), jets(deposits, particles)]

    @cached_property
    def _reconstruction(self) -> Reconstruction:
        # ACTS is loaded where it works: not by a parent of workers, nor by the stage after this one.
        from collidium_plugins.acts_pipeline.detector import geometry
        from collidium_plugins.acts_pipeline.detector.reconstruction import Reconstruction

        return Reconstruction(geometry.build())


def phases(order: Order) -> list[Phase]:
    """What the stage does."""
    return [Reconstruct(order)]
