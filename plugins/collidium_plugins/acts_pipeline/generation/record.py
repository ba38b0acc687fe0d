"""Selects particles from an event record of Pythia.

It keeps particles that do not decay in the generator, and as their ancestors decayed particles of interest:
hadrons with b or c quarks, K0S and hyperons, tau leptons, W, Z, H, t and particles beyond the Standard Model.
It omits partons, hadrons that decay by the strong or electromagnetic force, and decayed particles without a
kept daughter; so a particle has decayed if and only if it is a parent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from collidium.physics.constants import SPEED_OF_LIGHT
from collidium_plugins.acts_pipeline.events import Columns


@dataclass(frozen=True, slots=True, eq=False)
class Interaction(Columns):
    """Particles of one or several interactions; parents come before their daughters.

    Production vertices are relative to the interaction, in mm and ns; momenta and masses are in GeV.
    ``parent`` is the index of the parent in the same interaction, or -1.
    """

    pdg_id: npt.NDArray[np.int64]
    charge: npt.NDArray[np.float32]
    mass: npt.NDArray[np.float32]
    px: npt.NDArray[np.float32]
    py: npt.NDArray[np.float32]
    pz: npt.NDArray[np.float32]
    energy: npt.NDArray[np.float32]
    vx: npt.NDArray[np.float32]
    vy: npt.NDArray[np.float32]
    vz: npt.NDArray[np.float32]
    time: npt.NDArray[np.float32]
    primary: npt.NDArray[np.bool_]
    parent: npt.NDArray[np.int32]

    @classmethod
    def from_rows(cls, rows: Sequence[tuple[Any, ...]]) -> Self:
        """Return the interaction of one tuple per particle, in the order of the fields."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(TYPES)
        return cls(*(np.array(column, kind) for column, kind in zip(columns, TYPES.values(), strict=True)))


TYPES: Final[dict[str, type[Any]]] = dict(
    zip(
        (field.name for field in fields(Interaction)),
        (np.int64, *(np.float32,) * 10, np.bool_, np.int32),
        strict=True,
    )
)


#: t, Z, W, H, Z', H2 and A of the Higgs portal, mesons of the hidden valley.
_RESONANCES: Final = frozenset({6, 23, 24, 25, 32, 35, 36, 4900113, 4900211, 4900213})
#: Superpartners.
_SUSY: Final = range(1_000_001, 3_000_000)
_TAU: Final = 15
#: K0S, Λ, Σ-, Σ+, Ξ-, Ξ0, Ω-: they fly for centimetres; their decay products are not primary.
_STRANGE: Final = frozenset({310, 3122, 3112, 3222, 3312, 3322, 3334})
_NEUTRINOS: Final = frozenset({12, 14, 16})
_CHARM, _BOTTOM = 4, 5
#: Pythia's status codes of hadrons from string fragmentation.
_FRAGMENTATION: Final = range(81, 90)


def heavy_flavour(pdg: int) -> int:
    """Return 5 for a hadron with a b quark, 4 for one with a c quark and no b quark, else 0."""
    pdg = abs(pdg)
    if not 100 < pdg < 10_000_000 or 1_000_000 <= pdg < 9_000_000:
        return 0
    quarks = {pdg // 10 % 10, pdg // 100 % 10, pdg // 1000 % 10}
    if pdg // 10 % 10 == 0 and pdg not in {130, 310}:  # a diquark
        return 0
    return next((quark for quark in (_BOTTOM, _CHARM) if quark in quarks), 0)


def interaction(record: Any, keeps: Callable[[Any], bool]) -> Interaction:
    """Return the selected particles of an event record (``pythia8mc.Event``).

    ``keeps`` decides about final particles.
    """
    entries = list(record)
    selected = [
        index
        for index, entry in enumerate(entries)
        if (keeps(entry) if entry.isFinal() else _is_decay_of_interest(entries, entry))
    ]
    ancestry = _Ancestry(entries, selected)
    parents = {index: ancestry.nearest(index) for index in selected}
    kept = _without_childless(entries, selected, parents)
    places = {index: place for place, index in enumerate(kept)}
    primary: dict[int, bool] = {}
    for index in kept:
        parent = parents[index]
        primary[index] = parent < 0 or (primary[parent] and entries[parent].idAbs() not in _STRANGE)
    return Interaction.from_rows(
        [_row(entries[index], primary[index], places.get(parents[index], -1)) for index in kept]
    )


def keep_all(entry: Any) -> bool:
    """Keep all final particles: for hard scatters."""
    return True


def keep_visible(entry: Any) -> bool:
    """Keep particles with |η| < 5 except neutrinos: for pileup."""
    return entry.idAbs() not in _NEUTRINOS and abs(entry.eta()) < 5.0


def _is_decay_of_interest(entries: Sequence[Any], entry: Any) -> bool:
    kind = entry.idAbs()
    if kind in _STRANGE:
        return True
    daughters = range(entry.daughter1(), entry.daughter2() + 1)
    if kind in _RESONANCES or kind in _SUSY or kind == _TAU:  # only the last copy, after radiation and recoil
        return not any(entries[daughter].idAbs() == kind for daughter in daughters)
    flavour = heavy_flavour(kind)  # only the hadron that decays weakly, not its excited states
    return flavour > 0 and not any(heavy_flavour(entries[daughter].id()) == flavour for daughter in daughters)


class _Ancestry:
    """Finds the nearest selected ancestor of entries of an event record; results are cached."""

    def __init__(self, entries: Sequence[Any], selected: Sequence[int]) -> None:
        self._entries, self._selected = entries, frozenset(selected)
        self._known: dict[int, int] = {}

    def nearest(self, index: int) -> int:
        """Return the index of the nearest selected ancestor, or -1.

        A hadron from string fragmentation descends from a particle if both ends of its string do. That is
        so for hadrons from a W, whose partons are colour-singlets, but not for those from a top quark.
        """
        path = []
        at = index
        while True:
            if at in self._known:
                found = self._known[at]
                break
            path.append(at)
            entry = self._entries[at]
            mother = entry.mother1()
            if entry.statusAbs() in _FRAGMENTATION:
                ends = {self._at_or_above(mother), self._at_or_above(entry.mother2())}
                found = ends.pop() if len(ends) == 1 else -1
                break
            if mother in self._selected:
                found = mother
                break
            if mother <= 2:  # the beams
                found = -1
                break
            at = mother
        self._known.update(dict.fromkeys(path, found))
        return found

    def _at_or_above(self, index: int) -> int:
        return index if index in self._selected else self.nearest(index)


def _without_childless(entries: Sequence[Any], selected: Sequence[int], parents: dict[int, int]) -> list[int]:
    """Remove decayed particles without a kept daughter."""
    with_daughters: set[int] = set()
    kept = []
    for index in reversed(selected):  # daughters have larger indices
        if entries[index].isFinal() or index in with_daughters:
            kept.append(index)
            with_daughters.add(parents[index])
    return kept[::-1]


def _row(entry: Any, primary: bool, parent: int) -> tuple[Any, ...]:
    return (
        entry.id(),
        entry.charge(),
        entry.m(),
        entry.px(),
        entry.py(),
        entry.pz(),
        entry.e(),
        entry.xProd(),
        entry.yProd(),
        entry.zProd(),
        entry.tProd() / SPEED_OF_LIGHT,
        primary,
        parent,
    )
