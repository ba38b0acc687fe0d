"""Generator particles of a dataset as HepMC3 text (Asciiv3).

It is written here: the wheel of ACTS writes its own records alone, and pyhepmc would be a library for five
kinds of line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from collidium.contracts.tables import is_list, is_number
from collidium.errors import UnusableDataset
from collidium.physics.ragged import Ragged
from collidium.physics.truth import Finder

HEADER: Final = b"HepMC::Version 3.02.06\nHepMC::Asciiv3-START_EVENT_LISTING\n"
FOOTER: Final = b"HepMC::Asciiv3-END_EVENT_LISTING\n\n"

_MOMENTUM: Final = ("px", "py", "pz", "energy", "mass")
_POSITION: Final = ("vx", "vy", "vz", "time")
_COLUMNS: Final = ("particle_id", "parent_id", "pdg_id", "vertex_primary", "primary", *_MOMENTUM, *_POSITION)
#: Status codes of HepMC3: final state, decayed, beam.
_FINAL, _DECAYED, _BEAM = 1, 2, 4
#: PDG codes from 81 to 100 are reserved for internal use by programs.
_UNKNOWN: Final = 90
_PROTON: Final = 2212
_PROTONS: Final = tuple((0.0, 0.0, sign * 6999.99993713, 7000.0, 0.93827209) for sign in (1.0, -1.0))
#: Speed of light in mm/ns.
_LIGHT: Final = 299.792458
#: Production vertices are equal if they agree to so many digits, in mm and mm/c.
_DIGITS: Final = 3
#: More generations than an event can have.
_MAX_GENERATIONS: Final = 1000

Arrays = Mapping[str, npt.NDArray[Any]]


def event_texts(particles: pa.Table) -> Iterator[bytes]:
    """Yield the text of each event, in GeV and mm, with times as c·t.

    Only primary particles are written: others are made by the detector simulation, which may simulate them
    again. The table has no beams, so two protons of 7 TeV enter each collision. Particles without a parent in
    the table, produced micrometres or more from the collision's first particle, are daughters of a particle
    with PDG id 90, which has the sum of their momenta.

    Parameters
    ----------
    particles
        Table ``particles``, one row per event, with canonical column names.

    Raises
    ------
    UnusableDataset
        If a column is missing or withheld, or a particle is its own ancestor.

    References
    ----------
    A. Buckley et al., The HepMC3 event record library, Comput. Phys. Commun. 260 (2021) 107310.
    """
    missing = [name for name in _COLUMNS if name not in particles.column_names]
    if missing:
        raise UnusableDataset(f"HepMC3 needs column {', '.join(missing)} of table particles, which has none")
    for name in _COLUMNS:
        kind: Any = particles.schema.field(name).type
        if not is_list(kind) or not is_number(kind.value_type):
            raise UnusableDataset(
                f"HepMC3 needs lists of numbers in column {name} of table particles, not {kind}"
            )
    for row in range(len(particles)):
        event_id = particles.column("event_id")[row].as_py()
        columns = {name: particles.column(name).slice(row, 1) for name in _COLUMNS}
        if any(column.null_count for column in columns.values()):
            raise UnusableDataset(f"the particles of event {event_id} are withheld")
        arrays = {name: np.asarray(pc.list_flatten(column)) for name, column in columns.items()}
        primary = arrays["primary"].astype(bool)
        try:
            yield _event(event_id, {name: array[primary] for name, array in arrays.items()})
        except IndexError:  # columns of different lengths
            raise UnusableDataset(
                f"columns of table particles differ in length in event {event_id}"
            ) from None


def _event(event_id: int, particles: Arrays) -> bytes:
    parent = _parents(particles)
    order = np.argsort(_generations(event_id, parent), kind="stable")
    momenta = np.stack([particles[name] for name in _MOMENTUM], axis=1).astype(np.float64)
    positions = np.stack([particles[name] for name in _POSITION], axis=1).astype(np.float64)
    positions[:, 3] *= _LIGHT
    vertex, collision, sums = _production_vertices(particles["vertex_primary"], positions, momenta, parent)
    decayed = np.zeros(len(parent), bool)
    decayed[parent[parent >= 0]] = True
    codes, status = particles["pdg_id"].tolist(), np.where(decayed, _DECAYED, _FINAL).tolist()
    lines = _Lines()
    numbers = [0] * len(parent)
    vertices: dict[tuple[str, int], int] = {}

    for place in order.tolist():
        mother, first, produced = int(parent[place]), int(collision[place]), int(vertex[place])
        if mother >= 0:
            key = ("decay", mother)
            if key not in vertices:
                vertices[key] = lines.vertex(positions[place], [numbers[mother]])
        else:
            key = ("collision", first)
            if key not in vertices:
                beams = [lines.particle(0, _PROTON, proton, _BEAM) for proton in _PROTONS]
                vertices[key] = lines.vertex(positions[first], beams)
            if produced != vertex[first]:
                key, before = ("unknown", produced), vertices[key]
                if key not in vertices:
                    unknown = lines.particle(before, _UNKNOWN, sums[produced], _DECAYED)
                    vertices[key] = lines.vertex(positions[place], [unknown])
        numbers[place] = lines.particle(vertices[key], codes[place], momenta[place], status[place])
    return lines.text(event_id)


class _Lines:
    """The lines of an event. Particles are numbered 1, 2, …, vertices -1, -2, …"""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._particles = self._vertices = 0

    def particle(self, production: int, code: int, momentum: Iterable[float], status: int) -> int:
        self._particles += 1
        numbers = " ".join(f"{number:.8e}" for number in momentum)
        self._lines.append(f"P {self._particles} {production} {code} {numbers} {status}")
        return self._particles

    def vertex(self, position: Iterable[float], incoming: Sequence[int]) -> int:
        self._vertices += 1
        numbers = " ".join(f"{number:.8e}" for number in position)
        self._lines.append(f"V {-self._vertices} 0 [{','.join(map(str, incoming))}] @ {numbers}")
        return -self._vertices

    def text(self, event_id: int) -> bytes:
        head = f"E {event_id} {self._vertices} {self._particles}\nU GEV MM\n"
        return (head + "\n".join(self._lines) + "\n").encode()


def _parents(particles: Arrays) -> npt.NDArray[np.int64]:
    """The index of each particle's parent; -1 if the table has none."""
    one_event = np.array([0, len(particles["particle_id"])])
    ids, wanted = (Ragged(particles[name], one_event) for name in ("particle_id", "parent_id"))
    at = Finder(ids).rows(wanted)
    return np.where(at != np.arange(len(at)), at, -1)


def _generations(event_id: int, parent: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The number of ancestors of each particle."""
    number, ancestor = np.zeros(len(parent), np.int64), parent
    for _ in range(_MAX_GENERATIONS):
        if not np.any(ancestor >= 0):
            return number
        number += ancestor >= 0
        ancestor = np.where(ancestor >= 0, parent[ancestor], -1)
    raise UnusableDataset(f"particles of event {event_id} are their own ancestors")


def _production_vertices(
    vertex_primary: npt.NDArray[Any],
    positions: npt.NDArray[np.float64],
    momenta: npt.NDArray[np.float64],
    parent: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Group particles without parent by production vertex.

    Returns the number of each particle's vertex, the index of its collision's first particle, and for each
    vertex the sum of its particles' four-momenta with its invariant mass.
    """
    orphans = np.flatnonzero(parent < 0)
    vertex, collision = np.full(len(parent), -1), np.full(len(parent), -1)
    keys = np.column_stack([vertex_primary[orphans], np.round(positions[orphans], _DIGITS)])
    _, number = np.unique(keys, axis=0, return_inverse=True)
    vertex[orphans] = number.reshape(-1)  # NumPy 2.0.0 returns a column
    _, first, number = np.unique(vertex_primary[orphans], return_index=True, return_inverse=True)
    collision[orphans] = orphans[first][number]
    sums = np.zeros((int(vertex.max(initial=-1)) + 1, momenta.shape[1]))
    np.add.at(sums, vertex[orphans], momenta[orphans])
    square = sums[:, 3] ** 2 - (sums[:, :3] ** 2).sum(axis=1)
    sums[:, 4] = np.sqrt(np.maximum(square, 0.0))
    return vertex, collision, sums
