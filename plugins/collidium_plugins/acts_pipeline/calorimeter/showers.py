"""Showers in the calorimeters, as energy deposits in sensors ("spots") of about a minimum-ionising particle.

Electrons and photons: the depth of spots follows a gamma distribution in radiation lengths, whose maximum is
that of the Review of Particle Physics (passage of particles through matter). Hadrons ionise until they
interact, after an exponential number of interaction lengths; then a part of their energy makes
electromagnetic showers, and the depth of the rest follows a gamma distribution, with a delayed part. Muons
ionise all along. Spots are independent, so their number and the spread of their energies determine the
resolution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from collidium_plugins.acts_pipeline.calorimeter.geometry import (
    ECAL,
    HCAL,
    REGIONS,
    Arrivals,
    Floats,
    Integers,
    Layers,
)
from collidium_plugins.acts_pipeline.events import Columns

#: Kinds of showers.
NONE: Final = 0
ELECTROMAGNETIC: Final = 1
HADRONIC: Final = 2
MUON: Final = 3

_INVISIBLE: Final = (12, 14, 16, 1000022, 1000039, 4900211, 4900213, 4900111, 4900113, 9000025)
_BARYONS: Final = (1000, 10_000)

#: Maximum number of spots of a part of a shower; the energies of more spots are scaled.
_MAX_SPOTS: Final = 20_000
#: Minimum energy of a shower, GeV.
_MIN_ENERGY: Final = 0.005
#: Critical energy of tungsten, GeV.
_CRITICAL: Final = 0.008
#: Most probable energy and spread of spots in showers, relative to those of single particles: showers have
#: inclined and multiple crossings and slow electrons.
_SHOWER_PEAK: Final = 1.3
_SHOWER_SPREAD: Final = 3.0
#: Energy of spots of the non-electromagnetic part of hadronic showers in the ECal, relative to others: slow
#: protons and fragments ionise more.
_HEAVY: Final = 2.5
#: Mean of the standard Moyal distribution: the Euler-Mascheroni constant plus ln 2.
_MOYAL_MEAN: Final = 1.27036
#: The mean electromagnetic fraction of a hadron's energy is 1 - (E / GeV) to this power (D. Groom, Nucl.
#: Instrum. Meth. A 572 (2007) 633); it follows a beta distribution whose parameters have the sum _EM_SUM.
_GROOM: Final = -0.17
_EM_SUM: Final = 5.0
#: Fraction of a hadron's energy that its first interaction turns into photons, a third for three charges of
#: pions, and the mean distance to further ones in interaction lengths.
_FIRST: Final = 1 / 3
_LATER: Final = 1.0
#: Shape and scale of the depth of a hadron's spots after its interaction, in interaction lengths.
_DEPTH: Final = (1.5, 0.8)
#: Relative fluctuation of the visible non-electromagnetic energy E is this over √(E / GeV): binding energies.
_NUCLEAR: Final = 0.4
#: Fraction of a hadron's spots that is delayed, and the mean delay, ns.
_LATE: Final = (0.2, 15.0)
#: R of the transverse profile, mm; 90% of spots are within 3 R. And the maximum distance over R.
_WIDTH: Final = {ELECTROMAGNETIC: 3.5, HADRONIC: 30.0}
_MAX_WIDTH: Final = 20.0
#: Standard deviations of groups of spots of hadrons in the ECal, along and across the shower, mm.
_GROUP: Final = (10.0, 4.0)

_ECAL_REGIONS: Final = np.array([region.layers is ECAL for region in REGIONS])
_MEASURES: Final = np.array([region.layers.number > 0 for region in REGIONS])


@dataclass(frozen=True, slots=True, eq=False)
class Spots(Columns):
    """Energy deposits in sensors, one entry each."""

    #: Index of the arrival.
    owner: Integers
    #: Index in ``REGIONS``.
    region: Integers
    #: Energy in the sensor, GeV.
    energy: Floats
    #: Distance along the line of flight, and offsets from it in two perpendicular directions, mm.
    distance: Floats
    first: Floats
    second: Floats
    #: Delay with respect to light, ns.
    delay: Floats


def kinds(pdg_id: npt.NDArray[np.int64]) -> Integers:
    """Return the kind of shower of each particle."""
    pdg = np.abs(pdg_id)
    kind = np.full(len(pdg), HADRONIC)
    kind[np.isin(pdg, (11, 22))] = ELECTROMAGNETIC
    kind[pdg == 13] = MUON
    kind[np.isin(pdg, _INVISIBLE)] = NONE
    return kind


def visible_energy(pdg_id: npt.NDArray[np.int64], energy: Floats, mass: Floats) -> Floats:
    """Return the visible energy, GeV: of baryons the kinetic energy, of antibaryons that plus two masses."""
    baryon = (np.abs(pdg_id) > _BARYONS[0]) & (np.abs(pdg_id) < _BARYONS[1])
    return np.where(baryon, energy - np.sign(pdg_id) * mass, energy)


def spots(
    kind: Integers,
    charged: npt.NDArray[np.bool_],
    visible: Floats,
    kinetic: Floats,
    arrivals: Arrivals,
    random: np.random.Generator,
) -> Spots:
    """Generate the spots of arrivals, whose ``visible`` and ``kinetic`` energies are in GeV."""
    path = _Path(arrivals)
    interaction = random.exponential(1.0, len(kind))
    ionised, lost = _ionisation(kind, charged, kinetic, path, interaction, random)
    energy = np.where(kind == MUON, 0.0, visible - lost)
    energy[(kind == HADRONIC) & (lost >= kinetic) | (energy < _MIN_ENERGY)] = 0.0
    hadrons = np.flatnonzero((kind == HADRONIC) & (energy > 0) & (interaction < path.total("interaction")))
    of_hadrons = energy[hadrons]
    mean = np.clip(1 - np.maximum(of_hadrons, 1.0) ** _GROOM, 0.01, 0.99)
    photons = of_hadrons * random.beta(mean * _EM_SUM, (1 - mean) * _EM_SUM)
    direct = np.flatnonzero((kind == ELECTROMAGNETIC) & (energy > 0))
    first, depth = photons * np.minimum(_FIRST / mean, 1.0), interaction[hadrons]
    end = path.total("interaction")[hadrons] * (1 - 1e-9)
    later = np.minimum(depth + random.exponential(_LATER, len(hadrons)), end)
    starts = [path.radiation_depth(hadrons, one) for one in (depth, later)]
    electromagnetic = _electromagnetic(
        np.concatenate([direct, hadrons, hadrons]),
        np.concatenate([energy[direct], first, photons - first]),
        np.concatenate([np.zeros(len(direct)), *starts]),
        path,
        random,
    )
    nuclear = _nuclear(hadrons, of_hadrons - photons, interaction[hadrons], path, random)
    return Spots.concatenate([ionised, electromagnetic, nuclear])


class _Path:
    """Depths of material along the lines of flight."""

    def __init__(self, arrivals: Arrivals) -> None:
        self.arrivals = arrivals
        widths = arrivals.leaves - arrivals.enters
        self._lengths = {
            name: np.array([getattr(region, name) for region in REGIONS])
            for name in ("radiation", "interaction")
        }
        self._ends = {name: np.cumsum(widths / length, axis=1) for name, length in self._lengths.items()}

    def total(self, name: str) -> Floats:
        """Return the total depth of each arrival, in radiation or interaction lengths."""
        ends: Floats = self._ends[name]
        return ends[:, -1]

    def locate(self, owner: Integers, depth: Floats, name: str) -> tuple[Integers, Floats]:
        """Return the region and the distance at a depth; ``len(REGIONS)`` beyond the last region."""
        ends = self._ends[name][owner]
        region = (ends <= depth[:, None]).sum(axis=1)
        inside = np.minimum(region, len(REGIONS) - 1)
        rest = (ends[np.arange(len(owner)), inside] - depth) * self._lengths[name][inside]
        return region, self.arrivals.leaves[owner, inside] - rest

    def radiation_depth(self, owner: Integers, interactions: Floats) -> Floats:
        """Convert a depth in interaction lengths to radiation lengths."""
        region, distance = self.locate(owner, interactions, "interaction")
        rest = (self.arrivals.leaves[owner, region] - distance) / self._lengths["radiation"][region]
        depth: Floats = self._ends["radiation"][owner, region] - rest
        return depth


def _ionisation(
    kind: Integers,
    charged: npt.NDArray[np.bool_],
    kinetic: Floats,
    path: _Path,
    interaction: Floats,
    random: np.random.Generator,
) -> tuple[Spots, Floats]:
    """Return the spots of charged particles until they interact or stop, and their energy losses, GeV."""
    lost = np.zeros(len(kind))
    chosen = np.flatnonzero(charged & np.isin(kind, (HADRONIC, MUON)))
    depth = np.where(kind == MUON, np.inf, interaction)[chosen]
    _, end = path.locate(chosen, np.minimum(depth, path.total("interaction")[chosen]), "interaction")
    end = np.where(depth < path.total("interaction")[chosen], end, np.inf)
    parts = []
    for number in np.flatnonzero(_MEASURES):
        layers = REGIONS[number].layers
        distance, cosine = path.arrivals.sensors(int(number))
        distance, cosine = distance[chosen], cosine[chosen]
        loss = (layers.loss / cosine)[:, None]
        reached = distance < end[:, None]
        crossed = reached & (lost[chosen, None] + np.cumsum(reached, axis=1) * loss < kinetic[chosen, None])
        owner, layer = np.nonzero(crossed)
        lost[chosen] += crossed.sum(axis=1) * loss[:, 0]
        # Particles that stopped cross no further region.
        stopped = reached.sum(axis=1) > crossed.sum(axis=1)
        lost[chosen[stopped]] = kinetic[chosen[stopped]]
        energy = _moyal(layers, 1.0, 1.0, len(owner), random) / cosine[owner]
        zero = np.zeros(len(owner))
        region = np.full(len(owner), number)
        parts.append(Spots(chosen[owner], region, energy, distance[owner, layer], zero, zero, zero))
    return Spots.concatenate(parts), lost


def _electromagnetic(
    owner: Integers, energy: Floats, start: Floats, path: _Path, random: np.random.Generator
) -> Spots:
    """Generate showers of electrons and photons of ``energy``; ``start`` is in radiation lengths."""
    region, _ = path.locate(owner, start, "radiation")
    fine = region < 3  # starts in or before the ECal
    each = np.where(fine, _quantum(ECAL, ECAL.electrons), _quantum(HCAL, HCAL.electrons))
    counts, factor = _counts(energy / each, random)
    shape = 1 + 0.5 * np.maximum(np.log(np.maximum(energy, _CRITICAL) / _CRITICAL), 0.1)
    of = np.repeat(np.arange(len(owner)), counts)
    depth = start[of] + random.gamma(shape[of]) / 0.5
    region, distance = path.locate(owner[of], depth, "radiation")
    measured = _measured(region)
    thinned = fine[of] & measured & ~_ECAL_REGIONS[np.minimum(region, len(REGIONS) - 1)]
    share = _quantum(ECAL, ECAL.electrons) / _quantum(HCAL, HCAL.electrons)
    measured[thinned] = random.random(int(thinned.sum())) < share
    of, region, distance = of[measured], region[measured], distance[measured]
    first, second = _transverse(_WIDTH[ELECTROMAGNETIC], len(of), random)
    energies = _spot_energies(region, random) * factor[of]
    return Spots(owner[of], region, energies, distance, first, second, np.zeros(len(of)))


def _nuclear(
    owner: Integers, energy: Floats, start: Floats, path: _Path, random: np.random.Generator
) -> Spots:
    """Generate the non-electromagnetic part of hadronic showers; ``start`` is in interaction lengths."""
    variance = _NUCLEAR**2 / np.maximum(energy, _MIN_ENERGY)
    energy = energy * random.gamma(1 / variance) * variance
    each = _quantum(HCAL, HCAL.hadrons)
    counts, factor = _counts(energy / each, random)
    of = np.repeat(np.arange(len(owner)), counts)
    depth = start[of] + random.gamma(_DEPTH[0], _DEPTH[1], len(of))
    region, distance = path.locate(owner[of], depth, "interaction")
    first, second = _transverse(_WIDTH[HADRONIC], len(of), random)
    late = (random.random(len(of)) < _LATE[0]) * random.exponential(_LATE[1], len(of))
    measured = _measured(region)
    fine = measured & _ECAL_REGIONS[np.minimum(region, len(REGIONS) - 1)]
    members = measured.astype(np.int64)
    members[fine] = random.poisson(each / _quantum(ECAL, ECAL.hadrons) / _HEAVY, int(fine.sum()))
    at = np.repeat(np.arange(len(of)), members)
    width = fine[at]
    offsets = [width * size * random.standard_normal(len(at)) for size in (_GROUP[0], _GROUP[1], _GROUP[1])]
    return Spots(
        owner[of][at],
        region[at],
        _spot_energies(region[at], random) * factor[of][at] * np.where(width, _HEAVY, 1.0),
        distance[at] + offsets[0],
        first[at] + offsets[1],
        second[at] + offsets[2],
        late[at],
    )


def _measured(region: Integers) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = np.append(_MEASURES, False)[region]
    return inside


def _quantum(layers: Layers, fraction: float) -> float:
    """Return the energy of a shower per spot."""
    return (_SHOWER_PEAK * layers.peak + _SHOWER_SPREAD * (layers.mean - layers.peak)) / fraction


def _counts(mean: Floats, random: np.random.Generator) -> tuple[Integers, Floats]:
    """Draw numbers of spots, and return the factors of their energies."""
    factor = np.maximum(mean / _MAX_SPOTS, 1.0)
    return random.poisson(mean / factor), factor


def _spot_energies(region: Integers, random: np.random.Generator) -> Floats:
    """Draw energies of spots of showers."""
    ecal = _ECAL_REGIONS[region]
    energy = np.empty(len(region))
    for layers, chosen in ((ECAL, ecal), (HCAL, ~ecal)):
        energy[chosen] = _moyal(layers, _SHOWER_PEAK, _SHOWER_SPREAD, int(chosen.sum()), random)
    return energy


def _moyal(layers: Layers, peak: float, spread: float, number: int, random: np.random.Generator) -> Floats:
    """Draw energies in sensors from the Moyal distribution (J. Moyal, Phil. Mag. 46 (1955) 263).

    It approximates the Landau distribution, and is that of minus the logarithm of a squared normal variable.
    The few negative values are made positive.
    """
    scale = spread * (layers.mean - layers.peak) / _MOYAL_MEAN
    return np.abs(peak * layers.peak - scale * np.log(random.standard_normal(number) ** 2))


def _transverse(width: float, number: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw transverse offsets of spots."""
    uniform, angle = random.random(number), random.uniform(-np.pi, np.pi, number)
    distance = width * np.minimum(np.sqrt(uniform / (1 - uniform)), _MAX_WIDTH)
    return distance * np.cos(angle), distance * np.sin(angle)
