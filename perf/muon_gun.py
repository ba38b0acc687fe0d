"""Tracking of the reference's muon gun: ``python perf/muon_gun.py --muons 100000``.

Muons of either charge, two in an event, even in pT from 1 to 10 GeV and in η to ±3, from the origin: the gun
of the Open Data Detector's own tests, whose efficiency stands next to ours (FATRAS, Gaussian smearing,
100,000 events). From there gaps between modules are at the same η in each layer; ``--spread`` shoots from the
luminous region of production instead, which blurs them. A particle counts if it left at least nine hits, and
is found if half of the hits of a track, or more, are its. Resolutions and pull widths are half of the central
68%; of pulls the standard deviation within ±5 follows, which is right where variances are and residuals are
even instead of Gaussian. ``--pt`` changes the range, ``--particle`` makes other particles, ``--gsf 12`` fits
them as electrons, as ``--vary gsf=12`` of orders does. One process; 1000 muons take 2 s of CPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from collidium.order import NOMINAL, Variation
from collidium_plugins.acts_pipeline.detector import geometry, layout
from collidium_plugins.acts_pipeline.detector.geometry import Detector
from collidium_plugins.acts_pipeline.detector.reconstruction import Reconstruction
from collidium_plugins.acts_pipeline.detector.simulation import Simulation
from collidium_plugins.acts_pipeline.events import COVARIANCE, GeneratedEvent, Particles, ReconstructedEvent
from collidium_plugins.acts_pipeline.tables import perigee

#: Efficiency after ambiguity resolution in bins of η 0.2 wide from -3; in all: 0.99636. Source:
#: ``ci/reference/performance_finding_ambi.root`` of OpenDataDetector/OpenDataDetector (MPL-2.0) at b2e95fc.
REFERENCE: Final = (
    *(0.997313, 0.999698, 0.999538, 0.987895, 0.999553, 0.985314, 0.999851, 0.998486, 0.999546, 0.999702),
    *(0.999701, 1.000000, 0.999702, 1.000000, 0.982914, 0.983555, 0.999850, 0.999848, 0.999544, 0.999559),
    *(0.999247, 0.999849, 0.998219, 0.998770, 0.982210, 0.997666, 0.987959, 0.999246, 0.999848, 0.996691),
)
ETA_EDGES: Final = np.linspace(-3.0, 3.0, len(REFERENCE) + 1)
#: Bins of resolutions and pulls: |η|, and quantiles of pT.
COARSE_ETA: Final = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
PT_BINS: Final = 3
#: Production's collisions, mm and ns: standard deviations of x, y, z and time.
REGION: Final = (0.0125, 0.0125, 55.5, 0.185)
MASSES: Final[Mapping[int, float]] = {11: 0.000511, 13: 0.105658, 211: 0.13957}
MIN_HITS: Final = 9
EVENT_PARTICLES: Final = 2

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Found:
    """Counted particles, one entry each; NaN for those that were not found."""

    eta: Floats
    pt: Floats
    found: npt.NDArray[np.bool_]
    #: (pT - true pT) / true pT.
    pt_error: Floats
    #: Of d0, z0, φ, θ and q/p, shape (5, particles).
    pulls: Floats


def gun(
    number: int, pt: tuple[float, float], pdg_id: int, seed: int, spread: bool = False
) -> Iterator[GeneratedEvent]:
    """The events: from the origin, or from production's collisions."""
    rng = np.random.default_rng(seed)
    for event_id in range(-(-number // EVENT_PARTICLES)):
        count = min(EVENT_PARTICLES, number - event_id * EVENT_PARTICLES)
        transverse, eta = rng.uniform(*pt, count), rng.uniform(-3.0, 3.0, count)
        phi, charge = rng.uniform(-np.pi, np.pi, count), rng.choice((-1.0, 1.0), count)
        x, y, z, at = (spread * sigma * rng.normal() for sigma in REGION)
        mass = MASSES[pdg_id]
        sign = charge if pdg_id > 100 else -charge
        columns = {
            "particle_id": np.arange(1, count + 1),
            "pdg_id": sign * pdg_id,
            "mass": mass,
            "energy": np.hypot(transverse * np.cosh(eta), mass),
            "charge": charge,
            "px": transverse * np.cos(phi),
            "py": transverse * np.sin(phi),
            "pz": transverse * np.sinh(eta),
            "vx": x,
            "vy": y,
            "vz": z,
            "time": at,
            "primary": True,
            "vertex_primary": 1,
            "parent_id": -1,
        }
        types = dict.fromkeys(columns, np.float32) | {"particle_id": np.uint64, "pdg_id": np.int64}
        types |= {"primary": np.bool_, "vertex_primary": np.uint16, "parent_id": np.int64}
        arrays = {
            name: np.broadcast_to(column, count).astype(types[name]) for name, column in columns.items()
        }
        yield GeneratedEvent(event_id, Particles(**arrays))


def measured(event: ReconstructedEvent, number: int) -> Found:
    """What became of the first ``number`` particles of an event."""
    particles, tracks = event.particles, event.tracks
    hits = np.bincount(event.hits.particle_id.astype(np.int64), minlength=number + 1)[1 : number + 1]
    rows = np.flatnonzero(hits >= MIN_HITS)
    majority = np.repeat(tracks.majority_particle_id, tracks.num_hits)
    of_track = np.repeat(np.arange(len(tracks)), tracks.num_hits)
    own = np.bincount(of_track, event.hits.particle_id[tracks.hit_ids] == majority, len(tracks))
    track = np.full(number + 1, -1)
    good = np.flatnonzero(2 * own >= tracks.num_hits)
    owners = tracks.majority_particle_id[good].astype(np.int64)
    track[owners[owners <= number]] = good[owners <= number]
    matched = track[1:][rows]
    found = matched >= 0
    momentum = np.stack([particles.px, particles.py, particles.pz], axis=1)[rows].astype(np.float64)
    pt = np.hypot(momentum[:, 0], momentum[:, 1])
    size = np.linalg.norm(momentum, axis=1)
    d0, z0 = (one[rows] for one in perigee(particles, layout.FIELD_TESLA))
    true = np.array(
        [
            d0,
            z0,
            np.arctan2(momentum[:, 1], momentum[:, 0]),
            np.arccos(momentum[:, 2] / size),
            particles.charge[rows] / size,
        ]
    )
    fitted = np.full((5, len(rows)), np.nan)
    variance = np.full((5, len(rows)), np.nan)
    if len(tracks):
        columns = np.array([tracks.d0, tracks.z0, tracks.phi, tracks.theta, tracks.qop], np.float64)
        diagonal = np.cumsum(np.arange(1, 6)) - 1
        fitted[:, found] = columns[:, matched[found]]
        variance[:, found] = tracks.covariance.reshape(-1, COVARIANCE)[matched[found]][:, diagonal].T
    residual = fitted - true
    residual[2] = np.remainder(residual[2] + np.pi, 2 * np.pi) - np.pi
    pt_error = np.abs(np.sin(fitted[3]) / fitted[4]) / pt - 1.0
    return Found(np.arctanh(momentum[:, 2] / size), pt, found, pt_error, residual / np.sqrt(variance))


def run(
    detector: Detector,
    number: int,
    pt: tuple[float, float],
    pdg_id: int = 13,
    seed: int = 1,
    variation: Variation = NOMINAL,
    spread: bool = False,
) -> Found:
    """Simulate and reconstruct ``number`` particles."""
    simulation, reconstruction = Simulation(detector), Reconstruction(detector, variation)
    parts = []
    for event in gun(number, pt, pdg_id, seed, spread):
        reconstructed = reconstruction.reconstruct(simulation.simulate(event, seed), seed)
        parts.append(measured(reconstructed, len(event.particles)))
    names = Found.__slots__
    return Found(**{name: np.concatenate([getattr(part, name) for part in parts], axis=-1) for name in names})


def width(values: Floats) -> float:
    """Half of the central 68%."""
    low, high = np.nanquantile(values, (0.16, 0.84))
    return float(high - low) / 2


def deviation(pulls: Floats) -> float:
    """The standard deviation within ±5."""
    return float(pulls[np.abs(pulls) < 5.0].std())


def _error(passed: npt.NDArray[np.bool_]) -> float:
    """The standard error of the part that passes; with one more of each kind, so that it is never 0."""
    share = (passed.sum() + 1) / (len(passed) + 2)
    return float(np.sqrt(share * (1 - share) / len(passed)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--muons", type=int, default=2000, help="particles to simulate")
    parser.add_argument("--pt", type=float, nargs=2, default=(1.0, 10.0), metavar=("FROM", "TO"), help="GeV")
    parser.add_argument("--particle", type=int, choices=MASSES, default=13, help="PDG number")
    parser.add_argument("--gsf", type=int, default=0, help="components of a Gaussian-sum fit; 0: none")
    parser.add_argument("--spread", action="store_true", help="shoot from production's collisions")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    begun = time.process_time()
    fit = Variation(gsf=options.gsf)
    made = options.muons, tuple(options.pt), options.particle, options.seed, fit, options.spread
    found = run(geometry.build(), *made)
    low = width(found.pt_error)
    total, share = len(found.eta), found.found.mean()
    print(
        f"{total} of {options.muons} particles with at least {MIN_HITS} hits; "
        f"efficiency {share:.4f} ± {_error(found.found):.4f} (reference 0.9964 for 1 to 10 GeV), "
        f"resolution of pT {low:.2%}; {time.process_time() - begun:.0f} s of CPU\n"
    )
    print("| η | particles | efficiency | reference | difference |\n|---|---:|---:|---:|---:|")
    place = np.clip(np.digitize(found.eta, ETA_EDGES) - 1, 0, len(REFERENCE) - 1)
    for number, reference in enumerate(REFERENCE):
        there = found.found[place == number]
        if len(there):
            edges = f"{ETA_EDGES[number]:.1f} to {ETA_EDGES[number + 1]:.1f}"
            off = f"{there.mean() - reference:+.4f} ± {_error(there):.4f}"
            print(f"| {edges} | {len(there)} | {there.mean():.4f} | {reference:.4f} | {off} |")
    print("\n| \\|η\\| | pT (GeV) | resolution of pT | pulls: d0 | z0 | φ | θ | q/p |")
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    edges = np.linspace(*options.pt, PT_BINS + 1)
    for first, last in pairwise(COARSE_ETA):
        for least, most in pairwise(edges):
            size, pt = np.abs(found.eta), found.pt
            chosen = (size >= first) & (size < last) & (pt >= least) & (pt < most) & found.found
            if chosen.sum() > 30:
                widths = [f"{width(pull):.2f}, {deviation(pull):.2f}" for pull in found.pulls[:, chosen]]
                pulls = " | ".join(widths)
                pt_range = f"{least:.0f} to {most:.0f}"
                print(f"| {first} to {last} | {pt_range} | {width(found.pt_error[chosen]):.2%} | {pulls} |")


if __name__ == "__main__":
    main()
