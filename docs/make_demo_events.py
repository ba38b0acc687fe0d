"""Makes the events of `collidium demo` next to the real ones: jets, and a thinned mix of channels::

    python docs/make_demo_events.py WORK        two minutes on one core; WORK keeps what was simulated

They stand below core/collidium/demo/data. Of the mix, every 60th deposit and hit is kept, for its size.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset, sample
from collidium.datasets.publishing.blinding import PUBLIC
from collidium.datasets.publishing.mixing import Mixing, mix
from collidium.seeding.plan import BACKGROUND, MIX, SIGNALS, copy_events

SEED: Final = 314159
JETS, CHANNEL_EVENTS, KEPT_OF_MIX = 40, 12, 60
#: Columns in addition to those of blind events; what refers to hits that are not there is left out.
TRUTH: Final = ("channel", "particle_id", "flavour")
#: Events in the mix of a known channel, and of a signal.
MIXED: Final = (8, 2)


def main(work: Path) -> None:
    for channel in (*BACKGROUND, *SIGNALS):
        events = JETS if channel == "ttbar" else CHANNEL_EVENTS
        _simulate(work / channel, channel, events)
    mixed = work / "mix"
    shutil.rmtree(mixed, ignore_errors=True)
    shares = []
    for channel in (*BACKGROUND, *SIGNALS):
        share = work / "shares" / channel
        shutil.rmtree(share, ignore_errors=True)
        events = EventRange(0, MIXED[channel in SIGNALS])
        shares.append(copy_events(work / channel, share, events))
    # Too few to be matched in visible energy.
    events = mix(Mixing(shares, MIX, mixed, 90_000, SEED)).events
    everything = EventRange(0, JETS)
    for table in ("jets", "tracks"):
        _write("jets", table, Dataset(work / "ttbar", "ttbar_pu0").table(table).load(everything))
    for table in ("channels", "tracks", "tracker_hits", "calo_hits"):
        rows = Dataset(mixed, MIX).table(table).load(events)
        _write("anomaly", table, _thinned(rows) if table.endswith("hits") else rows)


def _simulate(directory: Path, channel: str, events: int) -> None:
    order = ("--channel", channel, "--events", str(events), "--pileup", "0", "--seed", str(SEED))
    options = ("--pipeline", "acts", "--runtime", "none", "--output", str(directory))
    subprocess.run([sys.executable, "-m", "collidium", "simulate", *order, *options], check=True)


def _thinned(table: pa.Table) -> pa.Table:
    """The table with one of so many entries of each event, numbered anew."""
    columns: dict[str, Any] = {"event_id": table["event_id"]}
    for name in table.column_names[1:]:
        lists = table[name].combine_chunks()
        columns[name] = pa.array([one[::KEPT_OF_MIX] for one in lists.to_pylist()], lists.type)
    if "hit_id" in columns:
        numbers = [list(range(len(one))) for one in columns["hit_id"].to_pylist()]
        columns["hit_id"] = pa.array(numbers, columns["hit_id"].type)
    return pa.table(columns)


def _write(dataset: str, name: str, table: pa.Table) -> None:
    directory = sample.DIRECTORY.parent / dataset
    directory.mkdir(exist_ok=True)
    kept = {"event_id", *PUBLIC.get(name, ()), *TRUTH} - {"hit_ids", "constituents", "cell_id"}
    table = table.select([column for column in table.column_names if column in kept])
    path = directory / f"{name}.parquet"
    pq.write_table(table, path, compression="zstd", compression_level=19)
    sys.stdout.write(f"{path.name} of {dataset}: {path.stat().st_size:,} bytes\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("work", type=Path)
    main(parser.parse_args().work)
