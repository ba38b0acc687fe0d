"""``collidium train-baseline``: trains the baselines whose files the package ships."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.options import FILE, cache_option, hub_options, locate_source
from collidium.cli.output import note
from collidium.errors import ConfigurationError, UnusableDataset
from collidium.hookspecs import hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from collidium.contracts.task import Tables
    from collidium.hub.sources import HubDataset

#: The training function of each baseline; it takes a :class:`~collidium_tasks.common.Read`, returns the file.
TRAINERS: Final = {
    "anomaly/forest": "collidium_tasks.anomaly.baselines:train",
    "anomaly/mixture": "collidium_tasks.anomaly.learned:train_mixture",
    "anomaly/weak": "collidium_tasks.anomaly.learned:train_weak",
    "jets/deepsets": "collidium_tasks.jets.baselines.deepsets:train",
    "jets/trees": "collidium_tasks.jets.baselines.trees:train",
    "tracking/edges": "collidium_tasks.tracking.baselines.edges:train",
}
_INSTALL: Final = "pip install 'collidium[baselines]'"


@click.command("train-baseline", epilog=f"TASK/BASELINE is one of: {', '.join(sorted(TRAINERS))}.")
@click.argument("name", metavar="TASK/BASELINE", type=click.Choice(sorted(TRAINERS)))
@click.option(
    "--from",
    "source",
    default="baselines",
    show_default=True,
    metavar="DIR|OWNER",
    help="Directory of the training sets that `collidium seed` makes, or their owner on the hub.",
)
@click.option("--output", type=FILE, required=True, help="Output file, .npz.")
@cache_option
@hub_options
def train_baseline(
    name: str, source: str, output: Path, cache: Path | None, hub: str | None, revision: str | None
) -> None:
    """Train TASK/BASELINE and write its file.

    The package ships such a file for each baseline. On one machine, the same events and libraries give the
    same file. Needs JAX, Optax and scikit-learn (pip install 'collidium[baselines]').

    \b
    collidium train-baseline jets/deepsets --output deepsets.npz
    collidium train-baseline anomaly/mixture --from ./training-sets --output mixture.npz
    """
    from collidium.contracts.task import UnusableTruth
    from collidium.files import durable

    if missing := [one for one in ("jax", "optax", "sklearn") if find_spec(one) is None]:
        raise ConfigurationError(f"{', '.join(missing)} missing: {_INSTALL}")
    module, _, function = TRAINERS[name].partition(":")

    def read(dataset: str, tables: Sequence[str], events: int | None = None) -> Iterator[Tables]:
        return read_blocks(locate_source(f"{source}/{dataset}", hub, revision), tables, events, cache)

    try:
        content = getattr(import_module(module), function)(read)
    except UnusableTruth as error:
        raise UnusableDataset(str(error)) from error
    with durable.replacing(output) as file:
        file.write(content)
    note(f"{output}: {len(content):,} bytes")


def read_blocks(
    source: Path | HubDataset, tables: Sequence[str], events: int | None = None, cache: Path | None = None
) -> Iterator[Tables]:
    """Yield tables of the first events of a dataset, or of all, in blocks. Raises UnusableDataset."""
    from collidium.contracts.task import EventRange
    from collidium.datasets import Dataset, download

    dataset = Dataset(download(source, None, tables, cache=cache).directory)
    ids = dataset.table(tables[0]).event_ids[:events]
    if not len(ids):
        raise UnusableDataset("there are no events to learn from")
    for _, block in dataset.read(tables, EventRange(int(ids[0]), int(ids[-1]) + 1)):
        yield block


@hookimpl
def collidium_commands() -> Sequence[click.Command]:
    """Return the command of this plugin."""
    return [train_baseline]
