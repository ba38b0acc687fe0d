"""The phases of the four stages, generate, simulate, reconstruct and write, and of the HepMC3 export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.pipeline import LES_HOUCHES, TABLES
from collidium.contracts.task import NOTE
from collidium.datasets.exporting import hepmc3
from collidium.datasets.schemas import EXTENDED, events_per_shard
from collidium.datasets.writing import ShardWriter
from collidium_plugins.acts_pipeline import VERSION, calorimeter, files, seeds, tables
from collidium_plugins.acts_pipeline.calorimeter.cells import cells_of_particles
from collidium_plugins.acts_pipeline.calorimeter.cells import to_table as calo_hits
from collidium_plugins.acts_pipeline.detector.layout import FIELD_TESLA
from collidium_plugins.acts_pipeline.events import GeneratedEvent, SimulatedEvent, from_table, to_table
from collidium_plugins.acts_pipeline.generation import pileup
from collidium_plugins.acts_pipeline.generation.channels import MINIMUM_BIAS
from collidium_plugins.acts_pipeline.generation.events import Generator
from collidium_plugins.acts_pipeline.generation.pileup import PileupPool, collisions
from collidium_plugins.acts_pipeline.generation.pythia import Pythia
from collidium_plugins.acts_pipeline.order import ChunkPhase, Phase, StageOrder
from collidium_plugins.jet_finder.table import jets

if TYPE_CHECKING:
    from collidium_plugins.acts_pipeline.detector.reconstruction import Reconstruction
    from collidium_plugins.acts_pipeline.detector.simulation import Simulation


GENERATED: Final = "generated"
_POOL: Final = "pool"
#: Collisions per task.
_COLLISIONS: Final = 250


class Collisions(Phase):
    """Generates the pileup collisions that the order needs into ``pool/``."""

    name = "collisions"

    def __init__(self, order: StageOrder) -> None:
        super().__init__(order)
        self._folder = order.folder(_POOL)

    @property
    def sizes(self) -> list[int]:
        return [len(self._slice(task)) for task in range(-(-len(self._members) // _COLLISIONS))]

    def is_done(self, task: int) -> bool:
        return self._path(task).exists()

    def do(self, task: int) -> None:
        made = collisions(self._pythia, self.order.seed, self._slice(task).tolist())
        files.write(self._path(task), made, compress=False)

    @cached_property
    def _members(self) -> npt.NDArray[np.int64]:
        order = self.order
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
    """Generates events: hard scatter and pileup."""

    name = "events"
    targets = (GENERATED,)

    def make(self, events: range, sources: Sequence[pa.Table]) -> Sequence[pa.Table]:
        return [to_table(map(self._generator.generate, events), GeneratedEvent)]

    @cached_property
    def _generator(self) -> Generator:
        order = self.order
        pool = PileupPool(sorted(order.folder(_POOL).glob("*.arrow"))) if order.pileup else None
        lhe = order.work / LES_HOUCHES if order.lhe else None
        return Generator(order.channel, order.pileup, order.seed, pool, lhe)


#: Crossings of the tracker's modules, and the hosted table of the calorimeters.
SIMULATED: Final = "simulated"
DEPOSITS: Final = "deposits"


class Simulate(ChunkPhase):
    """Simulates tracker and calorimeters."""

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
        # Imported here, so that other stages do not load ACTS.
        from collidium_plugins.acts_pipeline.detector import variation
        from collidium_plugins.acts_pipeline.detector.simulation import Simulation

        return Simulation(variation.varied_detector(self.order.variation))


#: The folder of each table that this stage writes.
RECONSTRUCTED: Final = {
    name: f"reconstructed/{name}" for name in ("particles", "tracker_hits", "measurements", "tracks", "jets")
}


class Reconstruct(ChunkPhase):
    """Digitises hits, finds tracks and jets."""

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
        particles = tables.particles(made, cells, FIELD_TESLA * self.order.variation.field)
        return [
            particles,
            tables.tracker_hits(made),
            tables.measurements(made),
            tables.tracks(made),
            jets(deposits, particles),
        ]

    @cached_property
    def _reconstruction(self) -> Reconstruction:
        from collidium_plugins.acts_pipeline.detector import geometry
        from collidium_plugins.acts_pipeline.detector.reconstruction import Reconstruction

        return Reconstruction(geometry.build(), self.order.variation)


#: The folder that each hosted table comes from.
SOURCES: Final = {**RECONSTRUCTED, "calo_hits": DEPOSITS}


class Write(Phase):
    """Writes the hosted tables from the chunks, one task per table."""

    name = "tables"

    def __init__(self, order: StageOrder) -> None:
        super().__init__(order)
        self._tables = list(EXTENDED)
        for source in SOURCES.values():
            order.require(source)
        order.folder("written")  # records the order; the folder of the tables has only tables

    @property
    def sizes(self) -> list[int]:
        return [self.order.events] * len(self._tables)

    def is_done(self, task: int) -> bool:
        shards = list((self.order.work / TABLES).glob(f"{self._tables[task]}-*.parquet"))
        return len(shards) == -(-self.order.events // events_per_shard(self.order.pileup))

    def do(self, task: int) -> None:
        table, order = self._tables[task], self.order
        per_shard = events_per_shard(order.pileup)
        notes = {f"{NOTE}pipeline": VERSION, f"{NOTE}vary": str(order.variation) or "none"}
        schema = EXTENDED[table].with_metadata(notes)
        with ShardWriter(order.work / TABLES, table, schema, events_per_shard=per_shard) as writer:
            for chunk in order.chunks():
                writer.write(files.read(order.chunk(SOURCES[table], chunk)))


class HepMC3(Phase):
    """Writes the generated events as one HepMC3 text file, for other detector simulations."""

    name = "hepmc3"

    def __init__(self, order: StageOrder) -> None:
        super().__init__(order)
        order.require(GENERATED)

    @property
    def sizes(self) -> list[int]:
        return [self.order.events]

    def is_done(self, task: int) -> bool:
        return False

    def do(self, task: int) -> None:
        order = self.order
        with files.writing(order.work / "events.hepmc3") as partial, partial.open("wb") as output:
            output.write(hepmc3.HEADER)
            for chunk in order.chunks():
                events = files.read(order.chunk(GENERATED, chunk))
                names = [name.removeprefix("particles.") for name in events.column_names]
                output.writelines(hepmc3.event_texts(events.rename_columns(names)))
            output.write(hepmc3.FOOTER)


def phases(stage: str, order: StageOrder) -> list[Phase]:
    """Return the phases of a stage, in the order in which they run."""
    if stage == "generate":
        return [*([Collisions(order)] if order.pileup else []), Generate(order)]
    stages: dict[str, Callable[[StageOrder], Phase]] = {
        "hepmc3": HepMC3,
        "simulate": Simulate,
        "reconstruct": Reconstruct,
        "write": Write,
    }
    return [stages[stage](order)]
