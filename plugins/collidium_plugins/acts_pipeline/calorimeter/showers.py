"""Showers: what a particle leaves in sensors, as deposits ("spots") of about a minimum-ionising particle.

Electrons and photons: the depth of a spot follows a gamma distribution in radiation lengths, with its maximum
where the Review of Particle Physics puts it (chapter on passage of particles through matter). Hadrons ionise
sensor by sensor until they interact, after an exponential number of interaction lengths; a part of their
energy goes on as photons, the rest follows a gamma distribution, and some of it comes late. Muons ionise all
along. Spots are independent of each other, so that their number and their spread are the resolution.
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

#: Maximum number of spots of a part of a shower; beyond, each is larger.
_MAX_SPOTS: Final = 20_000
#: Minimum energy of a shower, GeV.
_MIN_ENERGY: Final = 0.005
#: Energy at which electrons lose as much by ionisation as by radiation in tungsten, GeV.
_CRITICAL: Final = 0.008
#: The most probable energy and the spread of spots in showers over those of single particles: slanting and
#: joint crossings, slow electrons.
_SHOWER_PEAK: Final = 1.3
_SHOWER_SPREAD: Final = 3.0
#: Spots of a hadron's shower but its photons in the electromagnetic calorimeter are larger by this: slow
#: protons and fragments ionise more.
_HEAVY: Final = 2.5
#: Mean of the standard Moyal distribution: Euler's constant and ln 2.
_MOYAL_MEAN: Final = 1.27036
#: Mean part of a hadron's energy that becomes photons is 1 - (E / GeV) to this power, D. Groom's (Nucl.
#: Instrum. Meth. A 572 (2007) 633); it fluctuates as a beta distribution whose parameters have this sum.
_GROOM: Final = -0.17
_EM_SUM: Final = 5.0
#: The part of a hadron's energy that its first interaction turns into photons, a third for three charges of
#: pions, and how much later in interaction lengths the rest appears on average.
_FIRST: Final = 1 / 3
_LATER: Final = 1.0
#: Depth of a hadron's spots from its interaction on, in interaction lengths: shape and scale.
_DEPTH: Final = (1.5, 0.8)
#: What nuclei keep and release of a hadron's energy E fluctuates by this over √E.
_NUCLEAR: Final = 0.4
#: The part of a hadron's spots that is late, and by how much on average, ns.
_LATE: Final = (0.2, 15.0)
#: R of the distribution across, mm: nine tenths lie within three times that. And its maximum over R.
_WIDTH: Final = {ELECTROMAGNETIC: 3.5, HADRONIC: 30.0}
_WIDEST: Final = 20.0
#: Spots of a hadron in the electromagnetic calorimeter are groups, so wide in mm along and across.
_GROUP: Final = (10.0, 4.0)

_ECAL_REGIONS: Final = np.array([region.layers is ECAL for region in REGIONS])
_MEASURES: Final = np.array([region.layers.number > 0 for region in REGIONS])


@dataclass(frozen=True, slots=True, eq=False)
class Spots(Columns):
    """Deposits in sensors, one entry each."""

    #: Which of the arrivals they are of.
    owner: Integers
    #: Which of ``REGIONS`` they are in.
    region: Integers
    #: Energy in the sensor, GeV.
    energy: Floats
    #: How far along the line of flight, and how far from it in two directions, mm.
    distance: Floats
    across: Floats
    upwards: Floats
    #: How much later than light, ns.
    delay: Floats


def kinds(pdg_id: npt.NDArray[np.int64]) -> Integers:
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
    kind: Integers,
    charged: npt.NDArray[np.bool_],
    visible: Floats,
    kinetic: Floats,
    arrivals: Arrivals,
    random: np.random.Generator,
) -> Spots:
    """Spots of arrivals of that ``kind``, of ``visible`` and ``kinetic`` energy in GeV."""
    path = _Path(arrivals)
    interacts = random.exponential(1.0, len(kind))
    ionised, lost = _ionisation(kind, charged, kinetic, path, interacts, random)
    energy = np.where(kind == MUON, 0.0, visible - lost)
    energy[(kind == HADRONIC) & (lost >= kinetic) | (energy < _MIN_ENERGY)] = 0.0
    hadrons = np.flatnonzero((kind == HADRONIC) & (energy > 0) & (interacts < path.total("interaction")))
    of_hadrons = energy[hadrons]
    mean = np.clip(1 - np.maximum(of_hadrons, 1.0) ** _GROOM, 0.01, 0.99)
    photons = of_hadrons * random.beta(mean * _EM_SUM, (1 - mean) * _EM_SUM)
    direct = np.flatnonzero((kind == ELECTROMAGNETIC) & (energy > 0))
    first, depth = photons * np.minimum(_FIRST / mean, 1.0), interacts[hadrons]
    end = path.total("interaction")[hadrons] * (1 - 1e-9)
    later = np.minimum(depth + random.exponential(_LATER, len(hadrons)), end)
    starts = [path.other_depth(hadrons, one) for one in (depth, later)]
    electromagnetic = _electromagnetic(
        np.concatenate([direct, hadrons, hadrons]),
        np.concatenate([energy[direct], first, photons - first]),
        np.concatenate([np.zeros(len(direct)), *starts]),
        path,
        random,
    )
    nuclear = _nuclear(hadrons, of_hadrons - photons, interacts[hadrons], path, random)
    return Spots.join([ionised, electromagnetic, nuclear])


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
        """All of it, in radiation or interaction lengths."""
        ends: Floats = self._ends[name]
        return ends[:, -1]

    def locate(self, owner: Integers, depth: Floats, name: str) -> tuple[Integers, Floats]:
        """The region and the distance where ``depth`` is reached; the number of regions beyond the last."""
        ends = self._ends[name][owner]
        region = (ends <= depth[:, None]).sum(axis=1)
        inside = np.minimum(region, len(REGIONS) - 1)
        rest = (ends[np.arange(len(owner)), inside] - depth) * self._lengths[name][inside]
        return region, self.arrivals.leaves[owner, inside] - rest

    def other_depth(self, owner: Integers, interactions: Floats) -> Floats:
        """Radiation lengths at a depth in interaction lengths."""
        region, distance = self.locate(owner, interactions, "interaction")
        rest = (self.arrivals.leaves[owner, region] - distance) / self._lengths["radiation"][region]
        depth: Floats = self._ends["radiation"][owner, region] - rest
        return depth


def _ionisation(
    kind: Integers,
    charged: npt.NDArray[np.bool_],
    kinetic: Floats,
    path: _Path,
    interacts: Floats,
    random: np.random.Generator,
) -> tuple[Spots, Floats]:
    """What charged particles leave sensor by sensor until they interact or stop; and what they lose so."""
    lost = np.zeros(len(kind))
    chosen = np.flatnonzero(charged & np.isin(kind, (HADRONIC, MUON)))
    depth = np.where(kind == MUON, np.inf, interacts)[chosen]
    _, end = path.locate(chosen, np.minimum(depth, path.total("interaction")[chosen]), "interaction")
    end = np.where(depth < path.total("interaction")[chosen], end, np.inf)
    parts = []
    for number in np.flatnonzero(_MEASURES):
        layers = REGIONS[number].layers
        met, steepness = path.arrivals.sensors(int(number))
        met, steepness = met[chosen], steepness[chosen]
        each = (layers.loss / steepness)[:, None]
        crossed = met < end[:, None]
        crossed &= lost[chosen, None] + np.cumsum(crossed, axis=1) * each < kinetic[chosen, None]
        owner, layer = np.nonzero(crossed)
        lost[chosen] += crossed.sum(axis=1) * each[:, 0]
        # Stopped ones cross nothing more.
        stopped = (met < end[:, None]).sum(axis=1) > crossed.sum(axis=1)
        lost[chosen[stopped]] = kinetic[chosen[stopped]]
        energy = _moyal(layers, 1.0, 1.0, len(owner), random) / steepness[owner]
        zero = np.zeros(len(owner))
        full = np.full(len(owner), number)
        parts.append(Spots(chosen[owner], full, energy, met[owner, layer], zero, zero, zero))
    return Spots.join(parts), lost


def _electromagnetic(
    owner: Integers, energy: Floats, start: Floats, path: _Path, random: np.random.Generator
) -> Spots:
    """Showers of electrons and photons of ``energy`` that begin at a depth in radiation lengths."""
    region, _ = path.locate(owner, start, "radiation")
    fine = region < 3  # begins in or before the electromagnetic calorimeter
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
    across, upwards = _across(_WIDTH[ELECTROMAGNETIC], len(of), random)
    spread = _spread(region, random) * factor[of]
    return Spots(owner[of], region, spread, distance, across, upwards, np.zeros(len(of)))


def _nuclear(
    owner: Integers, energy: Floats, start: Floats, path: _Path, random: np.random.Generator
) -> Spots:
    """What hadrons leave besides photons, from an interaction at a depth in interaction lengths on."""
    variance = _NUCLEAR**2 / np.maximum(energy, _MIN_ENERGY)
    energy = energy * random.gamma(1 / variance) * variance
    each = _quantum(HCAL, HCAL.hadrons)
    counts, factor = _counts(energy / each, random)
    of = np.repeat(np.arange(len(owner)), counts)
    depth = start[of] + random.gamma(_DEPTH[0], _DEPTH[1], len(of))
    region, distance = path.locate(owner[of], depth, "interaction")
    across, upwards = _across(_WIDTH[HADRONIC], len(of), random)
    late = (random.random(len(of)) < _LATE[0]) * random.exponential(_LATE[1], len(of))
    measured = _measured(region)
    fine = measured & _ECAL_REGIONS[np.minimum(region, len(REGIONS) - 1)]
    members = measured.astype(np.int64)
    members[fine] = random.poisson(each / _quantum(ECAL, ECAL.hadrons) / _HEAVY, int(fine.sum()))
    at = np.repeat(np.arange(len(of)), members)
    width = fine[at]
    along, left, up = (
        width * size * random.standard_normal(len(at)) for size in (_GROUP[0], _GROUP[1], _GROUP[1])
    )
    return Spots(
        owner[of][at],
        region[at],
        _spread(region[at], random) * factor[of][at] * np.where(width, _HEAVY, 1.0),
        distance[at] + along,
        across[at] + left,
        upwards[at] + up,
        late[at],
    )


def _measured(region: Integers) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = np.append(_MEASURES, False)[region]
    return inside


def _quantum(layers: Layers, fraction: float) -> float:
    """Energy of a shower for each of its spots."""
    return (_SHOWER_PEAK * layers.peak + _SHOWER_SPREAD * (layers.mean - layers.peak)) / fraction


def _counts(mean: Floats, random: np.random.Generator) -> tuple[Integers, Floats]:
    """How many spots there are, and how many times larger than usual they are."""
    factor = np.maximum(mean / _MAX_SPOTS, 1.0)
    return random.poisson(mean / factor), factor


def _spread(region: Integers, random: np.random.Generator) -> Floats:
    """Energies of spots of showers."""
    ecal = _ECAL_REGIONS[region]
    energy = np.empty(len(region))
    for layers, chosen in ((ECAL, ecal), (HCAL, ~ecal)):
        energy[chosen] = _moyal(layers, _SHOWER_PEAK, _SHOWER_SPREAD, int(chosen.sum()), random)
    return energy


def _moyal(layers: Layers, peak: float, spread: float, number: int, random: np.random.Generator) -> Floats:
    """Energies in sensors after J. Moyal's approximation of Landau's distribution (Phil. Mag. 46 (1955) 263).

    Minus the logarithm of a squared normal number has it. The few negative values count as positive.
    """
    scale = spread * (layers.mean - layers.peak) / _MOYAL_MEAN
    return np.abs(peak * layers.peak - scale * np.log(random.standard_normal(number) ** 2))


def _across(width: float, number: int, random: np.random.Generator) -> tuple[Floats, Floats]:
    even, angle = random.random(number), random.uniform(-np.pi, np.pi, number)
    distance = width * np.minimum(np.sqrt(even / (1 - even)), _WIDEST)
    return distance * np.cos(angle), distance * np.sin(angle)
