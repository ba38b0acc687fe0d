"""Makes the pictures of the README from real events and real output: ``python docs/make_pictures.py``.

Needs matplotlib (dependency group ``docs``). The same events and code give the same pictures.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.text import Text

from collidium import plugins
from collidium.client import simulate
from collidium.contracts.tables import flatten
from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.processes import isolated_environment

PICTURES = Path(__file__).with_name("pictures")

EVENT = 3
#: Particles with fewer hits are drawn as dots.
MIN_HITS = 3
#: Columns of the terminal whose output is shown.
WIDTH = 144

Floats = npt.NDArray[np.float64]


def event_display() -> Figure:
    """Hits of a real event, and the tracks that the honest baseline finds in them."""
    hits, track_ids = reconstructed_hits(EVENT)
    x, y, z = (np.asarray(hits.column(name), dtype=np.float64) for name in "xyz")
    figure = Figure(figsize=(12, 5.4), layout="constrained")
    across, along = figure.subplots(1, 2, width_ratios=(1, 1.6))
    outwards = np.sqrt(x**2 + y**2 + z**2)
    draw_tracks(across, x, y, track_ids, outwards)
    across.set(xlabel="x (mm)", ylabel="y (mm)", aspect="equal", title="across the beam")
    draw_tracks(along, z, np.hypot(x, y), track_ids, outwards)
    along.set(xlabel="z (mm)", ylabel="r (mm)", title="along the beam", ylim=(0, None))
    found = len(np.unique(track_ids[track_ids >= 0]))
    figure.suptitle(f"Event {EVENT}: $t\\bar t$ at 14 TeV, {len(x)} hits, {found} tracks found")
    return figure


def reconstructed_hits(event: int) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """Hits of the event, one row each, and the track of each hit (-1: none), by the best baseline."""
    table = pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet", filters=[("event_id", "=", event)])
    *_, reconstruct = plugins.load().tasks().get("tracking").baselines().values()
    hits = flatten(table, ["hit_id", "x", "y", "z"])
    predictions = reconstruct({"tracker_hits": table.drop_columns(["particle_id"])})
    hit_ids = np.asarray(predictions.column("hit_id"))
    rows = np.argsort(hit_ids)
    wanted = np.searchsorted(hit_ids[rows], np.asarray(hits.column("hit_id")))
    return hits, np.asarray(predictions.column("track_id"))[rows][wanted]


def draw_tracks(
    axes: Axes, across: Floats, up: Floats, track_ids: npt.NDArray[np.int64], order: Floats
) -> None:
    """Grey dots for hits without a track, a coloured line through the hits of each track."""
    alone = track_ids < 0
    axes.plot(across[alone], up[alone], ".", color="0.75", markersize=2)
    colours = mpl.colormaps["turbo"]
    tracks = np.unique(track_ids[~alone])
    for number, track in enumerate(tracks):
        rows = np.flatnonzero(track_ids == track)
        rows = rows[np.argsort(order[rows])]
        colour = colours((number * 0.618034) % 1)  # neighbours differ
        axes.plot(across[rows], up[rows], ".-", color=colour, markersize=2.5, linewidth=0.7)
    axes.spines[["top", "right"]].set_visible(False)


def real_and_simulated(simulated: Path) -> Figure:
    """Hits of a real event next to those of one that the built-in pipeline made, by their particles."""
    figure = Figure(figsize=(12, 8.6), layout="constrained")
    columns = figure.subplots(2, 2, height_ratios=(1.25, 1), sharex="row", sharey="row")
    samples = {
        f"Geant4, some of event {EVENT}": (EVENTS_DIRECTORY, EVENT),
        "collidium simulate": (simulated, 0),
    }
    for (title, (directory, event)), (across, along) in zip(samples.items(), columns.T, strict=True):
        x, y, z, particles = particle_hits(directory, event)
        outwards = np.sqrt(x**2 + y**2 + z**2)
        draw_tracks(across, x, y, particles, outwards)
        across.set(title=f"{title}: {len(x)} hits", xlabel="x (mm)", ylabel="y (mm)", aspect="equal")
        draw_tracks(along, z, np.hypot(x, y), particles, outwards)
        along.set(xlabel="z (mm)", ylabel="r (mm)", ylim=(0, None))
    return figure


def particle_hits(directory: Path, event: int) -> tuple[Floats, Floats, Floats, npt.NDArray[np.int64]]:
    """Position of each hit of an event (mm), and the number of its particle; -1 for one that left few."""
    block = EventRange(event, event + 1)
    _, tables = next(Dataset(directory).read(["tracker_hits"], block))
    hits = flatten(tables["tracker_hits"], ["x", "y", "z", "particle_id"])
    _, numbers, counts = np.unique(hits["particle_id"], return_inverse=True, return_counts=True)
    particles = np.where((counts[numbers] >= MIN_HITS) & (np.asarray(hits["particle_id"]) != 0), numbers, -1)
    x, y, z = (np.asarray(hits[name], dtype=np.float64) for name in "xyz")
    return x, y, z, particles


def demo_in_terminal() -> str:
    """What ``collidium demo`` prints, as SVG."""
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-m", "collidium", "demo"],
            check=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=home,
            env=isolated_environment(Path(home), {"COLUMNS": str(WIDTH), "FORCE_COLOR": "1"}),
        )
    with Path(os.devnull).open("w") as nowhere:
        console = Console(record=True, width=WIDTH, file=nowhere)
        console.print("[bold]$ collidium demo[/]")
        console.print(Text.from_ansi(done.stdout))
        svg = console.export_svg(title="collidium demo", unique_id="collidium-demo")
    # The fonts of the reader's own machine: a picture fetches nothing.
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)


def make(directory: Path) -> None:
    """Write all pictures into ``directory``."""
    directory.mkdir(parents=True, exist_ok=True)
    event_display().savefig(directory / "event.png", dpi=110, metadata={"Software": None})
    with tempfile.TemporaryDirectory() as simulated:
        simulate(preset="ttbar-quick", pipeline="acts", runtime="none", output=Path(simulated))
        picture = real_and_simulated(Path(simulated))
    picture.savefig(directory / "real_and_simulated.png", dpi=90, metadata={"Software": None})
    (directory / "demo.svg").write_text(demo_in_terminal())


if __name__ == "__main__":
    make(PICTURES)
