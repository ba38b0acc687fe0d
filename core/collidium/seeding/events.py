"""Events of datasets: shares of channels, and their mix, for tasks that ask which channel is which."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow.parquet as pq

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.datasets.publishing.mixing import Mixing, mix
from collidium.datasets.publishing.preparing import ReportProgress
from collidium.datasets.writing import folder, shard_name
from collidium.errors import UnusableDataset

#: Channels of the anomaly mix: what is known, and what is searched for.
BACKGROUND: Final = ("ttbar", "zmumu", "zee", "jets")
SIGNALS: Final = ("higgs_portal", "susy_gmsb", "hidden_valley", "zprime")
#: Signals in the mix; far more than the usual 1%, which would be ten events here.
SIGNAL_PERCENT: Final = 20
#: Events that are copied at once.
_SHARD: Final = 1000
#: The config of the mix.
MIX: Final = "anomaly_pu0"


def mix_channels(
    sources: Sequence[Path],
    output: Path,
    events: int,
    *,
    config: str = MIX,
    first_event: int = 0,
    seed: int | None = None,
    report: ReportProgress | None = None,
) -> EventRange:
    """Mix the first ``events`` of each channel in ``sources``, a dataset each, at ``output``; blocks.

    Parameters
    ----------
    seed : int, optional
        Seed of the order, as secret as the channels; default: a random one.

    Returns
    -------
    EventRange
        The ids of the mixed events.
    """
    scratch = output.with_name(f".{output.name}.shares")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        shares = [
            copy_events(source, scratch / str(number), EventRange(0, events))
            for number, source in enumerate(sources)
        ]
        mixing = Mixing(
            shares, config, output, first_event, seed, signals=SIGNALS, signal_percent=SIGNAL_PERCENT
        )
        return mix(mixing, report).events
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def copy_events(source: Path, directory: Path, places: EventRange, config: str | None = None) -> Path:
    """Copy a dataset's events at these places, counted from its first, in the hosted layout; blocks.

    Raises UnusableDataset where there are fewer.
    """
    configs = Dataset(source).configs()
    config = config or next(iter(configs))
    for name in configs.get(config) or configs[""]:  # tables outside a folder are of any config
        table = Dataset(source, config).table(name)
        ids = table.event_ids[places.start : places.stop]
        if len(ids) < len(places):
            raise UnusableDataset(f"{source} has {len(table.event_ids)} events, not {places.stop}")
        target = directory / folder(config, name)
        target.mkdir(parents=True)
        shards = [ids[first : first + _SHARD] for first in range(0, len(ids), _SHARD)]
        for number, held in enumerate(shards):
            events = table.load(EventRange(int(held[0]), int(held[-1]) + 1))
            pq.write_table(events, target / shard_name(number, len(shards)))
    return directory
