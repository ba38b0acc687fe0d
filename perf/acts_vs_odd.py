"""The built-in pipeline next to five fully simulated events: ``python perf/acts_vs_odd.py``.

Makes ttbar events without pileup with the pipeline ``acts`` (or reads them: ``--from DIR``), draws their
distributions over those of the real events (Open Data Detector, Geant4; CC-BY-4.0) that come with the
platform, writes ``perf/acts_vs_odd.png`` and prints a table.

The files of the five events hold what an event display showed: about a third of the hits, and the particles
that left them. So shapes are compared, not numbers per event.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from collidium.contracts.tables import flatten, list_lengths
from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY

PICTURE: Final = Path(__file__).with_suffix(".png")
CONFIG: Final = "ttbar_pu0"
TABLES: Final = ("particles", "tracker_hits", "tracks", "calo_hits")

#: Hits of a particle that a tracker could find.
FINDABLE: Final = 7
#: Tracks are compared above this transverse momentum (GeV) and within this pseudorapidity: the files of the
#: five events hold no softer ones, and resolutions depend on both.
TRACK_PT: Final = 1.0
TRACK_ETA: Final = 2.5
#: Where pixels end and where short strips end, in mm from the beam.
EDGES: Final = (200.0, 720.0)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Sample:
    """What is compared, over all events of a sample; one entry for each hit, particle or track."""

    label: str
    events: int
    #: Of hits: 0 pixels, 1 short strips, 2 long strips.
    region: Integers
    #: Of particles that left a hit: how many, transverse momentum (GeV), whether a track is theirs.
    hits: Integers
    pt: Floats
    found: npt.NDArray[np.bool_]
    #: Of compared tracks: hits, pseudorapidity, impact parameters (mm; z0: from the vertex), error of pT.
    track_hits: Integers
    eta: Floats
    d0: Floats
    z0: Floats
    pt_error: Floats
    #: Of deposits in the calorimeter: energy (GeV), and distance from the beam (mm).
    energy: Floats
    depth: Floats


def sample(label: str, directory: Path, config: str | None = None) -> Sample:
    """Read a sample: a dataset in a directory."""
    dataset = Dataset(directory, config)
    ids = dataset.table("tracks").event_ids
    blocks = dataset.read(TABLES, EventRange(int(ids[0]), int(ids[-1]) + 1), block_bytes=1 << 40)
    _, tables = next(blocks)
    hits = flatten(tables["tracker_hits"], ["x", "y", "particle_id"])
    particles = _particles(tables["particles"])
    tracks = flatten(tables["tracks"], ["d0", "z0", "theta", "qop", "majority_particle_id"])
    left = _keys(hits, "particle_id")[_column(hits, "particle_id") != 0]
    known, counts = np.unique(left, return_counts=True)
    keys = _keys(particles, "particle_id")
    of_particle = _looked_up(keys, known, counts)
    of_track = _keys(tracks, "majority_particle_id")
    pt = _column(particles, "pt")
    theta, z0 = _column(tracks, "theta"), _column(tracks, "z0")
    eta = -np.log(np.tan(theta / 2))
    true_pt = _looked_up(of_track, np.sort(keys), pt[np.argsort(keys)])
    measured_pt = np.abs(np.sin(theta) / _column(tracks, "qop"))
    seen = of_particle > 0
    compared = (measured_pt > TRACK_PT) & (np.abs(eta) < TRACK_ETA)
    deposits = flatten(tables["calo_hits"], ["x", "y", "total_energy"])
    return Sample(
        label=label,
        events=len(ids),
        region=np.digitize(_radius(hits), EDGES),
        hits=of_particle[seen],
        pt=pt[seen],
        found=np.isin(keys, of_track)[seen],
        track_hits=_inner_lengths(tables["tracks"], "hit_ids")[compared],
        eta=eta[compared],
        d0=_column(tracks, "d0")[compared],
        z0=(z0 - _medians(np.asarray(tracks["event_id"], np.int64), z0))[compared],
        pt_error=(measured_pt / np.where(true_pt > 0, true_pt, np.nan) - 1)[compared & (true_pt > 0)],
        energy=_column(deposits, "total_energy"),
        depth=_radius(deposits),
    )


def _particles(table: pa.Table) -> pa.Table:
    if "pt" in table.column_names:
        return flatten(table, ["particle_id", "pt"])
    flat = flatten(table, ["particle_id", "px", "py"])
    return flat.append_column("pt", pa.array(np.hypot(_column(flat, "px"), _column(flat, "py"))))


def _column(table: pa.Table, name: str) -> Floats:
    return np.asarray(table[name], dtype=np.float64)


def _radius(table: pa.Table) -> Floats:
    return np.hypot(_column(table, "x"), _column(table, "y"))


def _keys(table: pa.Table, column: str) -> npt.NDArray[np.uint64]:
    """One number for event and particle, equal in all tables of a sample."""
    events = np.asarray(table["event_id"], dtype=np.uint64)
    mixed = events * np.uint64(0x9E3779B97F4A7C15)  # wraps around: spreads events over all numbers
    return mixed ^ np.asarray(table[column], dtype=np.uint64)


def _looked_up(
    keys: npt.NDArray[np.uint64], known: npt.NDArray[np.uint64], values: npt.NDArray[Any]
) -> npt.NDArray[Any]:
    """The value of each key, 0 for one that is not ``known`` (sorted)."""
    places = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[places] == keys, values[places], 0)


def _inner_lengths(table: pa.Table, column: str) -> Integers:
    return list_lengths(pa.table({column: pc.list_flatten(table[column])}), column)


def _medians(events: Integers, values: Floats) -> Floats:
    """The median of each entry's event: tracks of the hard scatter are many enough to find its vertex."""
    medians = {event: np.median(values[events == event]) for event in np.unique(events)}
    return np.array([medians[event] for event in events])


# -- drawings and summary ---------------------------------------------------------------------------------


def picture(samples: list[Sample]) -> Figure:
    """Nine plots; lines are normalised to the same area, bars are statistical errors."""
    figure = Figure(figsize=(12.5, 10.5), layout="constrained")
    axes = figure.subplots(3, 3).flat
    pt_edges = np.geomspace(0.1, 100, 16)
    plots: list[tuple[str, Floats, str]] = [
        ("hits", np.arange(0.5, 26.5, 2.0), "hits of a particle"),
        ("pt", pt_edges, "$p_T$ of particles with hits (GeV)"),
        ("track_hits", np.arange(3.5, 24.5, 2.0), "hits of a track"),
        ("eta", np.linspace(-2.5, 2.5, 11), r"$\eta$ of tracks"),
        ("d0", np.linspace(-0.3, 0.3, 21), "$d_0$ of tracks (mm)"),
        ("z0", np.linspace(-0.6, 0.6, 21), "$z_0$ of tracks from the event's vertex (mm)"),
        ("pt_error", np.linspace(-0.06, 0.06, 25), "relative error of $p_T$"),
    ]
    for (name, edges, label), plot in zip(plots, axes, strict=False):
        for number, one in enumerate(samples):
            draw_shape(plot, getattr(one, name), edges, one.label, number)
        plot.set(xlabel=label, ylabel="share", xscale="log" if edges is pt_edges else "linear")
    *_, regions, efficiencies = figure.axes
    for number, one in enumerate(samples):
        draw_regions(regions, one, number, len(samples))
        draw_efficiency(efficiencies, one, np.geomspace(0.2, 50, 9), number)
    regions.set(ylabel="share of hits")
    efficiencies.set(
        xlabel="$p_T$ (GeV)",
        ylabel=f"particles of {FINDABLE}+ hits with a track",
        xscale="log",
        ylim=(0, 1.05),
    )
    figure.axes[0].legend(frameon=False, fontsize="small")
    for plot in figure.axes:
        plot.spines[["top", "right"]].set_visible(False)
    return figure


def draw_shape(plot: Axes, values: npt.NDArray[np.generic], edges: Floats, label: str, number: int) -> None:
    """A histogram of shares, as points with errors for the first sample and as a line for others."""
    counts, _ = np.histogram(values, edges)
    whole = max(counts.sum(), 1)
    if number == 0:
        middle = (edges[1:] + edges[:-1]) / 2
        plot.errorbar(middle, counts / whole, np.sqrt(counts) / whole, fmt="ko", markersize=3, label=label)
    else:
        plot.stairs(counts / whole, edges, color="tab:blue", fill=True, alpha=0.35, label=label)


def draw_regions(plot: Axes, one: Sample, number: int, samples: int) -> None:
    shares = np.bincount(one.region, minlength=3) / len(one.region)
    width = 0.8 / samples
    plot.bar(np.arange(3) + number * width, shares, width, color=["k", "tab:blue"][number], alpha=0.6)
    plot.set_xticks(np.arange(3) + width / 2, ["pixels", "short strips", "long strips"])


def draw_efficiency(plot: Axes, one: Sample, edges: Floats, number: int) -> None:
    """Share found, with binomial errors (Wald, with one success and one failure added)."""
    findable = one.hits >= FINDABLE
    total, _ = np.histogram(one.pt[findable], edges)
    found, _ = np.histogram(one.pt[findable & one.found], edges)
    share = (found + 1) / (total + 2)
    there = total > 0
    plot.errorbar(
        np.sqrt(edges[1:] * edges[:-1])[there],
        (found / np.maximum(total, 1))[there],
        np.sqrt(share * (1 - share) / (total + 2))[there],
        fmt="os"[number],
        color=["k", "tab:blue"][number],
        markersize=4,
    )


def summary(samples: list[Sample]) -> str:
    """Medians and widths as a Markdown table."""
    rows = {
        "events": [f"{one.events}" for one in samples],
        "hits of a particle, median": [f"{np.median(one.hits):.0f}" for one in samples],
        "share of hits in pixels": [f"{np.mean(one.region == 0):.0%}" for one in samples],
        "hits of a track, median": [f"{np.median(one.track_hits):.0f}" for one in samples],
        f"found, of particles above 1 GeV with {FINDABLE}+ hits": [
            f"{np.mean(one.found[(one.hits >= FINDABLE) & (one.pt > 1)]):.1%}" for one in samples
        ],
        "d0 of tracks, half of them within (µm)": [
            f"{1e3 * np.median(np.abs(one.d0)):.0f}" for one in samples
        ],
        "z0 from the vertex, half within (µm)": [f"{1e3 * np.median(np.abs(one.z0)):.0f}" for one in samples],
        "relative error of pT, half within": [f"{np.median(np.abs(one.pt_error)):.2%}" for one in samples],
        "energy of a deposit, median (MeV)": [f"{1e3 * np.median(one.energy):.2f}" for one in samples],
    }
    lines = [["", *(one.label for one in samples)], ["---", *["---:"] * len(samples)]]
    lines += [[name, *values] for name, values in rows.items()]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--from", dest="source", type=Path, help="events that were made before")
    parser.add_argument("--events", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="few events, and no picture is kept")
    arguments = parser.parse_args()
    real = sample("five events, Geant4 and ODD", EVENTS_DIRECTORY)
    with tempfile.TemporaryDirectory() as scratch:
        directory = arguments.source or made(Path(scratch), 10 if arguments.quick else arguments.events)
        samples = [real, sample("built-in pipeline", directory, CONFIG)]
    print(summary(samples))
    drawn = picture(samples)
    if not arguments.quick:
        drawn.savefig(PICTURE, dpi=90)


def made(directory: Path, events: int) -> Path:
    """Events of the built-in pipeline."""
    from collidium.client import simulate

    simulate(channel="ttbar", events=events, pileup=0, pipeline="acts", runtime="none", output=directory)
    return directory


if __name__ == "__main__":
    main()
