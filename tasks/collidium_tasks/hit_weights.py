"""``collidium hit-weights``: adds TrackML's hit weights, those of ``tracking/truth.py``, to a dataset."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.options import EXISTING_DIRECTORY
from collidium.cli.output import note
from collidium.cli.progress import progress_bar
from collidium.hookspecs import hookimpl

if TYPE_CHECKING:
    from collidium.runtime.progress import Progress

_HITS: Final = "tracker_hits"


@click.command("hit-weights")
@click.argument("directory", type=EXISTING_DIRECTORY)
@click.option("--config", metavar="NAME", help="Config; default: the only one.")
def hit_weights(directory: Path, config: str | None) -> None:
    """Add TrackML's hit weights to the dataset in DIRECTORY, as the column weight of tracker_hits.

    Weights are those that `collidium truth import` makes. Events whose truth is withheld are published
    without them. Shards are replaced one by one; the same command continues after a failure.

    \b
    collidium hit-weights ./events
    """
    with progress_bar("Weighing hits (events)") as progress:
        changed = add_weights(directory, config, progress)
    note(f"{changed} shards of {_HITS} have the column weight now.")


def add_weights(directory: Path, config: str | None = None, progress: Progress | None = None) -> int:
    """Rewrite each shard of tracker_hits that has no weights; return the number of shards rewritten.

    Blocking; memory is bounded by blocks of events. Raises UnusableDataset for events that cannot be truth of
    the tracking task.
    """
    import pyarrow as pa

    from collidium.contracts.tables import list_lengths, nested
    from collidium.contracts.task import UnusableTruth
    from collidium.datasets import Dataset, layout
    from collidium.datasets.reading.dataset import parquet_files
    from collidium.datasets.reading.shards import EventTable, blocks_of
    from collidium.datasets.writing import ShardWriter
    from collidium.errors import UnusableDataset
    from collidium.runtime.progress import ProgressCount
    from collidium_tasks.tracking.truth import prepare

    particles = Dataset(directory, config).table("particles")
    shards = [directory / path for path in layout.shards(sorted(parquet_files(directory)), _HITS, config)]
    tables = {shard: EventTable(_HITS, [shard]) for shard in shards}
    wanted = {shard: table for shard, table in tables.items() if "weight" not in table.columns}
    count = ProgressCount(progress, sum(len(table.event_ids) for table in wanted.values()))
    for shard, table in wanted.items():
        schema = table.schema.append(pa.field("weight", pa.list_(pa.float32())))
        events = table.event_ids
        with tempfile.TemporaryDirectory(prefix=".weights-", dir=shard.parent) as scratch:
            with ShardWriter(Path(scratch), _HITS, schema, events_per_shard=max(len(events), 1)) as writer:
                for _, rows in blocks_of({_HITS: table, "particles": particles}, events):
                    hits = rows[_HITS]
                    try:
                        weights = prepare(rows)["hits"].column("weight").combine_chunks()
                    except UnusableTruth as error:
                        raise UnusableDataset(str(error)) from error
                    column = nested(list_lengths(hits, "particle_id"), weights.cast(pa.float32()))
                    writer.write(hits.append_column("weight", column))
                    count.add(hits.num_rows)
            writer.paths[0].replace(shard)
    return len(wanted)


@hookimpl
def collidium_commands() -> Sequence[click.Command]:
    """Return the command of this plugin."""
    return [hit_weights]
