"""The calorimeters of the built-in pipeline next to Geant4: ``python perf/calorimeter.py``.

Prints response and resolution of photons in the electromagnetic calorimeter, mean residuals of photons and
pions by transverse momentum, and, with ``--from DIR`` (a dataset ``ttbar_pu0`` or ``ttbar_pu200``), the cells
of an event. Particles fly from the origin, without the tracker. Sources of the reference:

- response and resolution: OpenDataDetector ``b2e95fc``, ``ci/reference/combined_performance_ECal*.root``
  (56 layers then, 48 now; barrel at θ = 1.57, endcap at θ = 0.15; no threshold, no window), with its fits to
  these resolutions, a/√E ⊕ b: single ones are known to 4% (5 GeV) to 16% (100 GeV);
- residuals, mean of ``|E - E_true| / E_true``: ColliderML-Production ``7ec42d3``,
  ``notebooks/publication/plots/calo_resolution.zip`` (energies even in logarithm from 0.3 to 1000 GeV,
  |η| < 3.5);
- cells: ColliderML-Production, ``notebooks/infrastructure/22_…`` (8 and 10 events).
"""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from collidium.contracts.tables import list_lengths
from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.physics import calibration
from collidium_plugins.acts_pipeline.calorimeter import CaloHits, deposits
from collidium_plugins.acts_pipeline.events import NOT_SIMULATED, Ends, Particles

Floats = npt.NDArray[np.float64]

ENERGIES: Final = (5.0, 10.0, 20.0, 50.0, 100.0)
#: By region: angle to the beams, response, relative resolution and its error at each of the energies, and the
#: fit's terms.
PHOTONS: Final = {
    "barrel": (
        *(1.57, 0.02652, (0.0641, 0.0468, 0.0309, 0.0204, 0.0122), (0.0023, 0.0017, 0.0011, 0.0009, 0.0013)),
        (0.1422, 0.0),
    ),
    "endcap": (
        *(0.15, 0.02638, (0.0662, 0.0461, 0.0298, 0.0191, 0.0214), (0.0042, 0.0025, 0.0016, 0.0016, 0.0034)),
        (0.1393, 0.0055),
    ),
}
#: Centres of bins of transverse momentum (of photons), GeV, evenly spaced in its logarithm; mean residuals.
PT: Final = (0.468, 0.824, 1.45, 2.55, 4.48, 7.88, 13.9, 24.4, 42.9, 75.5, 132.7, 233.4, 410.6, 722.1)
RESIDUALS: Final = {
    22: (
        *(0.202, 0.173, 0.133, 0.115, 0.096, 0.093, 0.075, 0.087, 0.093, 0.066, 0.026, 0.020, 0.019),
        0.011,
    ),
    211: (
        *(0.421, 0.399, 0.376, 0.363, 0.337, 0.351, 0.340, 0.358, 0.359, 0.336, 0.326, 0.316, 0.308),
        0.348,
    ),
}
MASSES: Final = {22: 0.0, 211: 0.13957}
#: By dataset: kept cells and contributions of an event.
CELLS: Final = {"ttbar_pu0": (31_000, 52_085), "ttbar_pu200": (482_552, 630_957)}


def gun(pdg_id: int, energy: Floats, eta: Floats, phi: Floats) -> Particles:
    """Particles from the origin, with energies in GeV."""
    number, mass = len(energy), MASSES[pdg_id]
    pt = np.sqrt(np.maximum(energy**2 - mass**2, 0.0)) / np.cosh(eta)
    values: dict[str, npt.NDArray[Any]] = {
        field.name: np.zeros(number, np.float32) for field in fields(Particles)
    }
    values |= {"px": pt * np.cos(phi), "py": pt * np.sin(phi), "pz": pt * np.sinh(eta), "energy": energy}
    values["mass"] += mass
    values["charge"] += pdg_id == 211
    values |= {"particle_id": np.arange(1, number + 1, dtype=np.uint64), "pdg_id": np.full(number, pdg_id)}
    values["parent_id"] = np.full(number, -1)
    return Particles(**values)


def sums(particles: Particles, random: np.random.Generator, calibrated: bool) -> Floats:
    """Energy of each particle in the sensors, GeV, or that times the published factors."""
    nothing = np.zeros(len(particles), np.float32)
    ends = Ends(np.full(len(particles), NOT_SIMULATED, np.uint8), *[nothing] * 8)
    return by_particle(deposits(particles, ends, random), len(particles), calibrated)


def by_particle(hits: CaloHits, particles: int, calibrated: bool) -> Floats:
    """Sums over the cells, in the order of the particles' ids."""
    factor = np.repeat(calibration(hits.detector), hits.contributions)
    weights = hits.contrib_energies * (factor if calibrated else 1.0)
    counted = np.bincount(hits.contrib_particle_ids.astype(np.int64), weights, minlength=particles + 1)
    return counted[1:].astype(np.float64)


def fired(
    pdg_id: int, energy: Floats, eta: Floats, phi: Floats, random: np.random.Generator, calibrated: bool
) -> Floats:
    """Sums of such particles, of a hundred at a time: each leaves thousands of deposits."""
    parts = [slice(first, first + 100) for first in range(0, len(energy), 100)]
    guns = (gun(pdg_id, energy[part], eta[part], phi[part]) for part in parts)
    return np.concatenate([sums(particles, random, calibrated) for particles in guns])


def core(energy: Floats) -> tuple[float, float]:
    """Median and half of the middle 68%: mean and deviation of a Gaussian, whatever the tails."""
    low, middle, high = np.quantile(energy, (0.16, 0.5, 0.84))
    return middle, (high - low) / 2


def photons(number: int, random: np.random.Generator) -> None:
    """Response and resolution of photons, away from the edges of sectors."""
    print("\n| photons | E (GeV) | response | Geant4 | width | Geant4 | its fit |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for region, (theta, response, widths, errors, (root, constant)) in PHOTONS.items():
        for energy, width, error in zip(ENERGIES, widths, errors, strict=True):
            count = max(int(number * 20 / (20 + energy)), 50)
            eta = np.full(count, -np.log(np.tan(theta / 2)))
            side, inside = random.integers(0, 16, count), random.uniform(-0.8, 0.8, count)
            phi = (side + inside / 2) * np.pi / 8
            mean, deviation = core(fired(22, np.full(count, energy), eta, phi, random, calibrated=False))
            # The error of half of the central 68% of a Gaussian is 1.2 times that of its deviation.
            ours = f"{deviation / mean:.2%} ± {1.2 * deviation / mean / np.sqrt(2 * count):.2%}"
            print(
                f"| {region} | {energy:g} | {mean / energy:.5f} | {response:.5f} | {ours} "
                f"| {width:.2%} ± {error:.2%} | {np.hypot(root / energy**0.5, constant):.2%} |"
            )


def residuals(number: int, random: np.random.Generator) -> None:
    """Mean residuals by transverse momentum."""
    print("\n| pT (GeV) | photons | Geant4 | pions | Geant4 |\n|---:|---:|---:|---:|---:|")
    step = np.log(PT[-1] / PT[0]) / (len(PT) - 1)
    edges = np.log(PT[0]) + step * (np.arange(len(PT) + 1) - 0.5)
    rows = [[f"{pt:g}"] for pt in PT]
    for pdg_id, references in RESIDUALS.items():
        energy = np.exp(random.uniform(np.log(0.3), np.log(1000), number))
        eta, phi = random.uniform(-3.5, 3.5, number), random.uniform(-np.pi, np.pi, number)
        bins = np.digitize(np.log(energy / np.cosh(eta)), edges) - 1
        off = np.abs(fired(pdg_id, energy, eta, phi, random, calibrated=True) / energy - 1)
        for one, reference in enumerate(references):
            there = off[bins == one]
            rows[one] += [f"{there.mean():.3f} ± {there.std() / len(there) ** 0.5:.3f}", f"{reference:.3f}"]
    for row in rows:
        print(f"| {' | '.join(row)} |")


def cells(directory: Path) -> None:
    """Cells and contributions of an event of a dataset."""
    dataset = Dataset(directory)
    ids = dataset.table("calo_hits").event_ids
    events = EventRange(int(ids[0]), int(ids[-1]) + 1)
    _, tables = next(iter(dataset.read(("calo_hits", "particles"), events, block_bytes=1 << 40)))
    print("\n| dataset | events | cells | Geant4 | contributions | Geant4 |\n|---|---:|---:|---:|---:|---:|")
    made = list_lengths(tables["calo_hits"], "x").mean()
    contributions = pc.sum(pc.list_flatten(tables["particles"].column("num_calo_hits"))).as_py() / len(ids)
    for name, (kept, parts) in CELLS.items():
        if name in directory.name:
            print(f"| {name} | {len(ids)} | {made:.0f} | {kept} | {contributions:.0f} | {parts} |")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=2000, help="particles of a kind")
    parser.add_argument("--from", dest="directory", type=Path, help="a dataset to count the cells of")
    arguments = parser.parse_args()
    random = np.random.default_rng(1)
    photons(arguments.number, random)
    residuals(arguments.number, random)
    if arguments.directory:
        cells(arguments.directory)


if __name__ == "__main__":
    main()
