"""Draws the tracker's material next to that of the Open Data Detector: ``python docs/make_material.py``.

With ``--solve`` it first makes the part of ``material.json`` that stands for services and supports: in each
bin of η the carbon fibre and copper that the reference has more than our modules, shared among the surfaces
that lines through the bin cross. Needs matplotlib (dependency group ``docs``); takes a minute.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import acts
import acts.examples
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from collidium_plugins.acts_pipeline.detector import geometry, layout, material
from collidium_plugins.acts_pipeline.detector.algorithms import Algorithms

PICTURE = Path(__file__).with_name("pictures") / "material.png"
MAP = Path(material.__file__).with_name("material.json")
EDGES = np.array(material.MAP["eta_edges"])
#: The first bin of positive η.
MIDDLE = len(EDGES) // 2
#: Straight lines in a bin of η, and up to which |η| material is compared.
LINES = 400
MAX_ETA = 3.2

Floats = npt.NDArray[np.float64]

#: What counts as which subdetector of the reference.
PARTS: Mapping[str, Collection[str]] = {
    "beampipe": ("BeamPipe",),
    "pixel": ("16", "17", "18", "PixelOutside", "PixelBarrelEnd", "PixelEnd"),
    "sstrips": ("23", "24", "25", "SupportTube", "ShortStripOutside", "ShortStripBarrelEnd"),
    "lstrips": ("28", "29", "30", "LongStripOutside", "LongStripBarrelEnd"),
    "solenoid": ("Solenoid",),
}
#: Surfaces of services by the first and last bin, counted from the middle, that they take a share in.
SURFACES = {
    "pixel": {"PixelOutside": (0, 25), "PixelBarrelEnd": (14, 25), "PixelEnd": (22, 25)},
    "sstrips": {"SupportTube": (17, 24), "ShortStripOutside": (0, 15), "ShortStripBarrelEnd": (10, 16)},
    "lstrips": {"LongStripOutside": (0, 12), "LongStripBarrelEnd": (8, 8)},
}
#: Radius or |z| of the surfaces, mm.
PLACES: Mapping[str, dict[str, float]] = {
    "PixelOutside": {"r": 189.0},
    "PixelBarrelEnd": {"z": 561.4},
    "PixelEnd": {"z": 1737.4},
    "SupportTube": {"r": layout.SUPPORT_TUBE_RADIUS},
    "ShortStripOutside": {"r": 703.3},
    "ShortStripBarrelEnd": {"z": 1215.8},
    "LongStripOutside": {"r": 1072.6},
    "LongStripBarrelEnd": {"z": 1207.7},
}
#: mm of carbon fibre, up to |η| of its end.
SUPPORT_TUBE = 2.0, np.arcsinh(2000.0 / layout.SUPPORT_TUBE_RADIUS)


def profile(parts: Collection[str], eta: Floats, phi: Floats) -> Floats:
    """Return what straight lines from the origin cross of these parts, as FATRAS counts it.

    Parameters
    ----------
    parts : collection of str
        Names of :func:`material.slabs`.
    eta, phi : numpy.ndarray of float, shape (lines,)

    Returns
    -------
    numpy.ndarray of float, shape (lines, 2)
        Radiation lengths and nuclear interaction lengths.
    """
    slabs = material.slabs(dict.fromkeys(parts, 1.0))
    both = slabs, _in_interaction_lengths(slabs)
    return np.stack([_path(geometry.build(slabs=one), eta, phi) for one in both], axis=1)


def _in_interaction_lengths(
    slabs: Mapping[str, material.Slab | material.Bins],
) -> dict[str, material.Slab | material.Bins]:
    """Return slabs whose radiation lengths are the interaction lengths of ``slabs``.

    With them ACTS counts interaction lengths as radiation lengths: ``pathInL0`` of FATRAS 48.1.0 adds up the
    radiation lengths of all surfaces but the last.
    """

    def swapped(slab: material.Slab) -> material.Slab:
        return {replace(part, radiation=part.interaction): mm for part, mm in slab.items()}

    return {
        name: replace(slab, slabs=[swapped(one) for one in slab.slabs])
        if isinstance(slab, material.Bins)
        else swapped(slab)
        for name, slab in slabs.items()
    }


def _path(detector: geometry.Detector, eta: Floats, phi: Floats) -> Floats:
    """Radiation lengths on the way of muons of 10 TeV."""
    fatras = acts.examples.FatrasSimulation(
        level=geometry.LOG_LEVEL,
        inputParticles="muons",
        outputParticles="particles",
        outputSimHits="hits",
        randomNumbers=acts.examples.RandomNumbers(seed=0),
        trackingGeometry=detector.tracking_geometry,
        magneticField=detector.field,
        pMin=geometry.GEV,
    )
    container = acts.examples.SimParticleContainer
    run = Algorithms([fatras], inputs={"muons": container}, outputs={"particles": container}).run
    directions = np.stack([np.cos(phi), np.sin(phi), np.sinh(eta)], axis=1) / np.cosh(eta)[:, None]
    sent = container()
    for number, direction in enumerate(directions.tolist(), 1):
        barcode = acts.fatras.Barcode()
        barcode.vertexPrimary, barcode.particle = 1, number
        muon = acts.examples.SimParticle(barcode, acts.PdgParticle.eMuon, -1.0, 0.1057 * geometry.GEV)
        muon.direction, muon.absoluteMomentum = acts.Vector3(*direction), 1e4 * geometry.GEV
        sent.insert(muon)
    passed = np.zeros(len(eta))
    for particle in run(0, 1, muons=sent)["particles"]:
        if not particle.particleId.generation:
            passed[particle.particleId.particle - 1] = particle.pathInX0
    return passed


def lines(bins: Collection[int], each: int) -> tuple[Floats, Floats]:
    """η and φ of isotropic lines, ``each`` in every bin of η."""
    rng = np.random.default_rng(1)
    low, high = (np.tanh(EDGES[np.array(bins) + one])[:, None] for one in (0, 1))
    eta = np.arctanh(low + (high - low) * rng.random((len(bins), each))).ravel()
    return eta, rng.uniform(-np.pi, np.pi, eta.size)


def ours(part: str, bins: Collection[int], each: int = LINES, but: Collection[str] = ()) -> Floats:
    """Mean lengths of a subdetector in bins of η, shape (bins, 2), without the parts ``but``."""
    names = [name for name in PARTS[part] if name not in but]
    return profile(names, *lines(bins, each)).reshape(len(bins), each, 2).mean(axis=1)


def reference(part: str) -> Floats:
    """The same of the Open Data Detector, for all bins."""
    return np.array([material.MAP["reference"][part][length] for length in ("x0", "l0")]).T


def solve() -> None:
    """Make the surfaces of services of ``material.json``."""
    bins = np.arange(len(EDGES) - 1)
    fibre_and_metal = [
        [0.1 * part.density / length for length in (part.radiation, part.interaction)]
        for part in (material.FIBRE, material.COPPER)
    ]
    surfaces: dict[str, Any] = {
        name: place | {key: [0.0] * len(bins) for key in ("fibre", "copper")}
        for name, place in PLACES.items()
    }
    material.MAP["surfaces"] = surfaces
    cosh = np.cosh(lines(bins, LINES)[0]).reshape(len(bins), LINES)
    across = {"r": cosh.mean(axis=1), "z": (cosh / np.sqrt(cosh**2 - 1)).mean(axis=1)}
    tube, end = SUPPORT_TUBE
    nearest = np.minimum(np.abs(EDGES[1:]), np.abs(EDGES[:-1]))
    tube *= np.clip((end - nearest) / np.diff(EDGES), 0.0, 1.0)
    for part, shares in SURFACES.items():
        missing = reference(part) - ours(part, bins, but=shares)
        if part == "sstrips":
            missing -= (tube * across["r"])[:, None] * fibre_and_metal[0]
        for number in bins:
            relative = 1.0 / np.maximum(reference(part)[number], 1e-9)
            lengths = np.array(fibre_and_metal).T * relative[:, None]
            amounts = _not_negative(lengths, missing[number] * relative)
            away = number - MIDDLE if number >= MIDDLE else MIDDLE - 1 - number
            takers = [name for name, (first, last) in shares.items() if first <= away <= last]
            for name in takers:
                kind = "r" if "r" in PLACES[name] else "z"
                for key, amount in zip(("fibre", "copper"), amounts, strict=True):
                    surfaces[name][key][number] = round(float(amount / len(takers) / across[kind][number]), 4)
    fibre = np.array(surfaces["SupportTube"]["fibre"]) + tube
    surfaces["SupportTube"]["fibre"] = fibre.round(4).tolist()
    MAP.write_text(json.dumps(material.MAP, separators=(",", ":")) + "\n")


def _not_negative(matrix: Floats, wanted: Floats) -> Floats:
    """The two amounts, not negative, that come nearest to what is wanted."""
    both = np.linalg.solve(matrix, wanted)
    if (both >= 0).all():
        return both
    single = np.maximum(matrix.T @ wanted / (matrix**2).sum(axis=0), 0.0) * np.eye(2)
    return single[np.argmin(((single @ matrix.T - wanted) ** 2).sum(axis=1))]


def draw() -> None:
    """Both, by subdetector, with the ratio of all."""
    figure = Figure(figsize=(11, 7), layout="constrained")
    bins = np.arange(*np.searchsorted(EDGES, (-MAX_ETA - 1e-6, MAX_ETA - 1e-6)))
    colours = dict(zip(PARTS, ("0.5", "tab:blue", "tab:orange", "tab:green", "tab:red"), strict=True))
    mine = {part: ours(part, bins) for part in PARTS}
    axes = figure.subplots(2, 2, sharex=True, height_ratios=(3, 1))
    for column, label in enumerate(("radiation lengths", "interaction lengths")):
        upper, lower = axes[:, column]
        for part, colour in colours.items():
            theirs = reference(part)[bins, column]
            upper.stairs(theirs, EDGES[bins[0] : bins[-1] + 2], color=colour, label=part)
            centres = (EDGES[bins] + EDGES[bins + 1]) / 2
            upper.plot(centres, mine[part][:, column], "o", color=colour, markersize=4)
            ratio = mine[part][:, column] / np.where(theirs > 1e-3, theirs, np.nan)
            lower.plot(centres, ratio, "o", color=colour, markersize=4)
        upper.set(yscale="log", ylim=(1e-3, 10), ylabel=label)
        lower.set(ylim=(0.8, 1.2), xlabel="η", ylabel="ours / reference")
        lower.axhspan(0.9, 1.1, color="0.9")
    axes[0, 0].legend(title="lines: reference, dots: ours", ncols=3, loc="upper center")
    figure.savefig(PICTURE, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--solve", action="store_true", help="make the services of material.json first")
    if parser.parse_args().solve:
        solve()
    draw()


if __name__ == "__main__":
    main()
