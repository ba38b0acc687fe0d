"""Showers: how much energy a particle leaves, in how many spots, how deep and how far from its line.

Electrons and photons: the depth of a spot follows a gamma distribution in radiation lengths, with its maximum
where the Review of Particle Physics puts it (chapter on passage of particles through matter). Hadrons begin
to shower after an exponential number of interaction lengths and follow a gamma distribution from there.
Muons leave what a minimum-ionising particle does, evenly. Across, spots follow 2 r R² / (r² + R²)².
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.calorimeter.geometry import ECAL, HCAL, Floats

#: Kinds of showers.
NONE: Final = 0
ELECTROMAGNETIC: Final = 1
HADRONIC: Final = 2
MUON: Final = 3

_INVISIBLE: Final = (12, 14, 16, 1000022, 1000039, 4900211, 4900213, 4900111, 4900113, 9000025)
_BARYONS: Final = (1000, 10_000)

#: Energy of a spot, GeV, and maximum number of spots of a particle.
_SPOT: Final = 0.05
_MAX_SPOTS: Final = 300
#: Minimum visible energy of a particle, GeV.
_MIN_ENERGY: Final = 0.02
#: Relative resolution: stochastic term (times 1/sqrt(E)) and constant term.
_RESOLUTION: Final = {ELECTROMAGNETIC: (0.17, 0.01), HADRONIC: (0.60, 0.05), MUON: (0.1, 0.1)}
#: Energy at which electrons lose as much by ionisation as by radiation in tungsten, GeV.
_CRITICAL: Final = 0.008
#: What a muon leaves in all layers of each calorimeter, GeV.
_MUON_ECAL: Final = 0.25
_MUON_HCAL: Final = 1.5
#: R of the distribution across, mm: nine tenths lie within three times that.
_WIDTH: Final = {ELECTROMAGNETIC: 4.5, HADRONIC: 30.0, MUON: 0.5}
_WIDEST: Final = 20.0


@dataclass(frozen=True, slots=True, eq=False)
class Spots:
    """Spots of energy, one entry each."""

    #: Which of the particles they are of.
    owner: npt.NDArray[np.int64]
    #: GeV.
    energy: Floats
    #: How far along the direction of flight, mm, measured in material of the calorimeter that it lies in.
    depth: Floats
    in_hcal: npt.NDArray[np.bool_]
    #: How far from the line of flight, mm.
    across: Floats


def kinds(pdg_id: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The kind of shower of each particle."""
    pdg = np.abs(pdg_id)
    kind = np.full(len(pdg), HADRONIC)
    kind[np.isin(pdg, (11, 22))] = ELECTROMAGNETIC
    kind[pdg == 13] = MUON
    kind[np.isin(pdg, _INVISIBLE)] = NONE
    return kind


def visible_energy(pdg_id: npt.NDArray[np.int64], energy: Floats, mass: Floats) -> Floats:
    """Visible energy, GeV: of baryons the kinetic energy, of antibaryons plus two masses."""
    baryon = (np.abs(pdg_id) > _BARYONS[0]) & (np.abs(pdg_id) < _BARYONS[1])
    return np.where(baryon, energy - np.sign(pdg_id) * mass, energy)


def spots(
    kind: npt.NDArray[np.int64], energy: Floats, steepness: Floats, random: np.random.Generator
) -> Spots:
    """Spots of particles of that ``kind`` and visible ``energy``; ``steepness``: cosine of incidence."""
    energy = np.where(kind == MUON, np.minimum(energy, (_MUON_ECAL + _MUON_HCAL) / steepness), energy)
    energy = np.where(energy > _MIN_ENERGY, _smeared(kind, np.maximum(energy, _MIN_ENERGY), random), 0.0)
    counts = np.where(energy > 0, np.clip(np.ceil(energy / _SPOT), 1, _MAX_SPOTS), 0).astype(np.int64)
    owner = np.repeat(np.arange(len(kind)), counts)
    of = kind[owner]
    thickness = ECAL.depth / steepness[owner]
    in_hcal, depth = _depths(of, owner, energy, thickness, steepness[owner], random)
    width = np.choose(of, [0.0, *(_WIDTH[one] for one in (ELECTROMAGNETIC, HADRONIC, MUON))])
    even = random.random(len(owner))
    across = width * np.minimum(np.sqrt(even / (1 - even)), _WIDEST)
    contained = ~in_hcal | (depth < HCAL.depth / steepness[owner])
    each = energy[owner] / np.maximum(counts, 1)[owner]
    return Spots(owner[contained], each[contained], depth[contained], in_hcal[contained], across[contained])


def _smeared(kind: npt.NDArray[np.int64], energy: Floats, random: np.random.Generator) -> Floats:
    """Energies with the calorimeters' resolution, never negative; none for what is invisible."""
    terms = np.array([(0.1, 0.1), *(_RESOLUTION[one] for one in (ELECTROMAGNETIC, HADRONIC, MUON))])[kind]
    variance = terms[:, 0] ** 2 / energy + terms[:, 1] ** 2
    return np.where(kind == NONE, 0.0, random.gamma(1 / variance) * variance * energy)


def _depths(
    of: npt.NDArray[np.int64],
    owner: npt.NDArray[np.int64],
    energy: Floats,
    thickness: Floats,
    steepness: Floats,
    random: np.random.Generator,
) -> tuple[npt.NDArray[np.bool_], Floats]:
    """Which calorimeter each spot lies in, and how deep along the line of flight."""
    logarithm = np.log(np.maximum(energy, _CRITICAL) / _CRITICAL)
    shape = (1 + 0.5 * np.maximum(logarithm - 0.5, 0.1))[owner]
    radiation = random.gamma(shape) / 0.5 * ECAL.radiation_length
    start = random.exponential(1.0, len(energy))[owner]
    interactions = start + random.gamma(1.5, 0.8, len(owner))
    even = random.random(len(owner))

    nuclear = interactions * ECAL.interaction_length
    in_ecal = np.choose(of, [radiation, radiation, nuclear, np.full(len(of), np.inf)])
    first = _MUON_ECAL / (_MUON_ECAL + _MUON_HCAL)
    in_ecal[of == MUON] = np.where(even < first, even / first * thickness, np.inf)[of == MUON]
    beyond = in_ecal >= thickness

    later = np.choose(
        of,
        [
            radiation,
            (radiation - thickness) * HCAL.radiation_length / ECAL.radiation_length,
            (nuclear - thickness) * HCAL.interaction_length / ECAL.interaction_length,
            (even - first) / (1 - first) * HCAL.depth / steepness,
        ],
    )
    return beyond, np.where(beyond, later, in_ecal)
