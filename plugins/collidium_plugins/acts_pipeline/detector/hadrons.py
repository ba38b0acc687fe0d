"""What hadrons make when they collide with nuclei or decay: a pool of Pythia's collisions and decays.

Collisions with silicon are those of ``PythiaCascade``, from a pool, since its random numbers cannot be seeded
for each; slower hadrons, which it does not know, knock out nucleons.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pythia8mc

from collidium_plugins.acts_pipeline.order import StageFailed

Floats = npt.NDArray[np.float64]

#: Lifetimes times c, mm, of Pythia; of what the generator leaves and of what only the detector makes.
LIFETIMES: Final = {211: 7804.5, 321: 3713.0, 130: 15330.0}
SHORT: Final = {310: 26.842, 3122: 78.9, 3112: 44.34, 3222: 24.04, 3322: 87.1, 3312: 49.1, 3334: 24.61}
#: Projectiles of the pool; antiparticles of others count as these.
_PROJECTILES: Final = (211, -211, 321, -321, 130, 2212, 2112, -2212, 3122)
_MOMENTA: Final = 10.0 ** (np.arange(12) / 5)
_ENTRIES: Final = 40
_ATTEMPTS: Final = 400
#: Atomic and mass number of silicon.
_TARGET: Final = (14, 28)
#: What it takes to free a nucleon, GeV, and its mass.
_BINDING: Final = 0.008
_NUCLEON: Final = 0.939


class Pool:
    """Products of collisions and decays by Pythia, the same in every process.

    Each is to be turned around the flight of its parent; momenta of collisions scale with that of
    the parent, which differs by less than 26% from the pool's.
    """

    @cached_property
    def _made(self) -> tuple[Sequence[Sequence[list[Floats]]], Mapping[int, list[Floats]]]:
        """Collisions by projectile and momentum, and decays: two seconds, once they are needed."""
        with _silent():
            return self._fill()

    def _fill(self) -> tuple[Sequence[Sequence[list[Floats]]], Mapping[int, list[Floats]]]:
        self._cascade = pythia8mc.PythiaCascade()
        setup = next(
            (
                path
                for parent in Path(str(pythia8mc.__file__)).parents
                if (path := parent / "share/Pythia8/setups/InitDefaultMPI.cmnd").exists()
            ),
            "",
        )
        if not self._cascade.init(0.2, 0.5, str(setup), True, 1e-3, True, True):
            raise StageFailed("PythiaCascade cannot be set up")
        collisions = [[self._collide(kind, p) for p in _MOMENTA] for kind in _PROJECTILES]
        return collisions, {
            sign * kind: [self._decay(sign * kind) for _ in range(_ENTRIES)]
            for kind in LIFETIMES | SHORT
            for sign in ((1,) if kind in (130, 310) else (1, -1))
        }

    def products(
        self, pdg_id: int, p: float, mass: float, decays: bool, random: np.random.Generator
    ) -> Floats:
        """PDG id, momentum, energy, mass and charge of what a particle makes, GeV; shape (products, 7).

        The particle flies along z with momentum ``p``. Raises StageFailed if Pythia cannot be set up.
        """
        energy = math.hypot(p, mass)
        of_collisions, of_decays = self._made
        if decays:
            made = of_decays[pdg_id][random.integers(_ENTRIES)].copy()
            gamma, boost = energy / mass, p / mass
            made[:, 3], made[:, 4] = (
                gamma * made[:, 3] + boost * made[:, 4],
                gamma * made[:, 4] + boost * made[:, 3],
            )
        else:
            number = int(np.clip(np.rint(5 * math.log10(p)), 0, len(_MOMENTA) - 1)) if p else 0
            entries = of_collisions[_PROJECTILES.index(_like(pdg_id))][number] if p > 0.9 else []
            if entries:
                made = entries[random.integers(len(entries))].copy()
                made[:, 1:4] *= p / _MOMENTA[number]
                made[:, 4] = np.sqrt((made[:, 1:4] ** 2).sum(axis=1) + made[:, 5] ** 2)
            else:
                made = _knock_out(pdg_id, energy, mass, random)
        return made

    def _collide(self, kind: int, momentum: float) -> list[Floats]:
        """Collisions of a projectile along z; none where Pythia has no cross section."""
        mass = self._cascade.particleData().m0(kind)
        flight = pythia8mc.Vec4(0, 0, momentum, math.hypot(momentum, mass))
        found: list[Floats] = []
        for _ in range(_ATTEMPTS):
            if len(found) == _ENTRIES or not self._cascade.sigmaSetuphN(kind, flight, mass):
                break
            self._cascade.sigmahA(_TARGET[1])
            made = _final(self._cascade.nextColl(*_TARGET, pythia8mc.Vec4(0, 0, 0, 0)))
            if len(made):  # slow ones come back empty now and then
                found.append(made)
        return found

    def _decay(self, kind: int) -> Floats:
        mass = self._cascade.particleData().m0(kind)
        return _final(self._cascade.nextDecay(kind, pythia8mc.Vec4(0, 0, 0, mass), mass))


@contextmanager
def _silent() -> Iterator[None]:
    """Keep Pythia's banners, which no setting prevents here, from the standard output."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def _final(record: Any) -> Floats:
    """The final particles of a record but nuclei."""
    rows = [
        (one.id(), one.px(), one.py(), one.pz(), one.e(), one.m(), one.charge())
        for one in record
        if one.isFinal() and one.idAbs() < 1_000_000
    ]
    return np.array(rows).reshape(-1, 7)


def _like(pdg_id: int) -> int:
    """The projectile of the pool that stands for a hadron."""
    if pdg_id in _PROJECTILES:
        return pdg_id
    if abs(pdg_id) in (130, 310, 311):
        return 130
    return (3122 if abs(pdg_id) > 3000 else 2112) if pdg_id > 0 else -2212


def _knock_out(pdg_id: int, energy: float, mass: float, random: np.random.Generator) -> Floats:
    """A slow hadron frees nucleons and goes on with a part of its energy; half of the pions are absorbed.

    What is left of the energy after binding is shared evenly at random, mostly forward.
    """
    absorbed = abs(pdg_id) == 211 and random.random() < 0.5
    free = energy if absorbed else energy - mass
    number = 1 + random.poisson(1.0)
    shares = random.dirichlet(np.ones(number + (not absorbed))) * max(free - number * _BINDING, 0.0)
    protons = random.random(number) < 0.5
    kinds, masses = np.where(protons, 2212, 2112), np.full(number, _NUCLEON)
    charges = protons.astype(np.float64)
    if not absorbed:
        charge = {211: 1, 321: 1, 2212: 1, 3222: 1, 3112: -1, 3312: -1, 3334: -1}.get(abs(pdg_id), 0)
        kinds, masses = np.append(kinds, pdg_id), np.append(masses, mass)
        charges = np.append(charges, math.copysign(charge, charge * pdg_id))
    towards = random.standard_normal((len(kinds), 3))
    towards /= np.linalg.norm(towards, axis=1, keepdims=True)
    towards[:, 2] += 0.5
    towards /= np.linalg.norm(towards, axis=1, keepdims=True)
    momenta = np.sqrt(shares * (shares + 2 * masses))[:, None] * towards
    return np.column_stack([kinds, momenta, shares + masses, masses, charges])
