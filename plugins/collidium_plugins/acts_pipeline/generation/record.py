"""The particles kept from an event record of Pythia.

Kept are the particles that do not decay in the generator and, as their parents, those decayed ones that
are of interest: hadrons with b or c, K0S and hyperons, tau leptons, W, Z, H, t and the particles of models.
A decayed particle without a kept daughter is left out, so that "is a parent" and "has decayed" are the same
thing. Partons, and hadrons that decay by the strong or electromagnetic force, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.events import Columns

#: Millimetres that light travels in a nanosecond.
LIGHT: Final = 299.792458


@dataclass(frozen=True, slots=True, eq=False)
class Interaction(Columns):
    """Particles of one or of several interactions: one array entry for each, a parent before its daughters.

    Vertices are relative to where the interaction takes place, in mm, and their times in ns; momenta and
    masses in GeV. ``parent`` is the place of the parent in the same interaction, -1 for none.
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
        """From one tuple per particle, in the order of the fields."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(TYPES)
        return cls(*(np.array(column, kind) for column, kind in zip(columns, TYPES.values(), strict=True)))


TYPES: Final[dict[str, type[Any]]] = dict(
    zip(
        (field.name for field in fields(Interaction)),
        (np.int64, *(np.float32,) * 10, np.bool_, np.int32),
        strict=True,
    )
)


#: t, Z, W, H, Z', H2 and A of the Higgs portal, dark mesons.
_RESONANCES: Final = frozenset({6, 23, 24, 25, 32, 35, 36, 4900113, 4900211, 4900213})
#: Superpartners.
_SUSY: Final = range(1_000_001, 3_000_000)
_TAU: Final = 15
#: K0S, Λ, Σ-, Σ+, Ξ-, Ξ0, Ω-: they fly for centimetres, and their decay products are not primary.
_STRANGE: Final = frozenset({310, 3122, 3112, 3222, 3312, 3322, 3334})
_NEUTRINOS: Final = frozenset({12, 14, 16})
_CHARM, _BOTTOM = 4, 5
#: Status codes of hadrons that come from strings, in Pythia's numbering.
_FRAGMENTATION: Final = range(81, 90)


def heavy_flavour(pdg: int) -> int:
    """5 for a hadron with a b quark, 4 for one with a c quark and no b, else 0."""
    pdg = abs(pdg)
    if not 100 < pdg < 10_000_000 or 1_000_000 <= pdg < 9_000_000:
        return 0
    quarks = {pdg // 10 % 10, pdg // 100 % 10, pdg // 1000 % 10}
    if pdg // 10 % 10 == 0 and pdg not in {130, 310}:  # a diquark
        return 0
    return next((quark for quark in (_BOTTOM, _CHARM) if quark in quarks), 0)


def interaction(record: Any, keeps: Callable[[Any], bool]) -> Interaction:
    """The particles of an event record (``pythia8mc.Event``), of final ones those that ``keeps`` says."""
    entries = list(record)
    wanted = [
        index
        for index, entry in enumerate(entries)
        if (keeps(entry) if entry.isFinal() else _decays_are_of_interest(entries, entry))
    ]
    ancestry = _Ancestry(entries, wanted)
    parents = {index: ancestry.of(index) for index in wanted}
    kept = _with_kept_daughters(entries, wanted, parents)
    places = {index: place for place, index in enumerate(kept)}
    primary: dict[int, bool] = {}
    for index in kept:
        parent = parents[index]
        primary[index] = parent < 0 or (primary[parent] and entries[parent].idAbs() not in _STRANGE)
    return Interaction.from_rows(
        [_row(entries[index], primary[index], places.get(parents[index], -1)) for index in kept]
    )


def everything(entry: Any) -> bool:
    """Keep all final particles, of a hard scatter."""
    return True


def seen(entry: Any) -> bool:
    """Keep particles of pileup that reach the detector: |η| < 5, no neutrinos."""
    return entry.idAbs() not in _NEUTRINOS and abs(entry.eta()) < 5.0


def _decays_are_of_interest(entries: Sequence[Any], entry: Any) -> bool:
    kind = entry.idAbs()
    if kind in _STRANGE:
        return True
    daughters = range(entry.daughter1(), entry.daughter2() + 1)
    if kind in _RESONANCES or kind in _SUSY or kind == _TAU:  # the last copy, after radiation and recoil
        return not any(entries[daughter].idAbs() == kind for daughter in daughters)
    flavour = heavy_flavour(kind)  # of excited hadrons the one that decays weakly
    return flavour > 0 and not any(heavy_flavour(entries[daughter].id()) == flavour for daughter in daughters)


class _Ancestry:
    """Of each entry the nearest wanted one that it comes from."""

    def __init__(self, entries: Sequence[Any], wanted: Sequence[int]) -> None:
        self._entries, self._wanted = entries, frozenset(wanted)
        self._known: dict[int, int] = {}

    def of(self, index: int) -> int:
        """The nearest wanted one that the entry comes from, -1 for none.

        What a string made comes from a particle if both of the string's ends do: partons of a W do not mix
        with others, those of a top quark or a proton do.
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
            if mother in self._wanted:
                found = mother
                break
            if mother <= 2:  # the beams
                found = -1
                break
            at = mother
        self._known.update(dict.fromkeys(path, found))
        return found

    def _at_or_above(self, index: int) -> int:
        return index if index in self._wanted else self.of(index)


def _with_kept_daughters(entries: Sequence[Any], wanted: Sequence[int], parents: dict[int, int]) -> list[int]:
    named: set[int] = set()
    kept = []
    for index in reversed(wanted):  # daughters have larger indices
        if entries[index].isFinal() or index in named:
            kept.append(index)
            named.add(parents[index])
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
        entry.tProd() / LIGHT,
        primary,
        parent,
    )
