"""``collidium jets``: adds the table ``jets`` to a dataset."""

from __future__ import annotations

from pathlib import Path

import click

from collidium.cli.options import EXISTING_DIRECTORY, json_option
from collidium.cli.output import json_wanted, note, show_record
from collidium.cli.progress import progress_bar


@click.command()
@click.argument("directory", type=EXISTING_DIRECTORY)
@click.option("--config", metavar="NAME", help="Config; default: the only one.")
@click.option("--without-flavour", is_flag=True, help="For particles without hadrons: flavours are null.")
@json_option
def jets(directory: Path, config: str | None, without_flavour: bool) -> None:
    """Add the table jets to the dataset in DIRECTORY: anti-kt jets of its calorimeter hits.

    Datasets of the built-in pipeline have it. Needs FastJet: pip install 'collidium[sim]'.

    \b
    collidium jets ./events
    collidium jets ./events --config ttbar_pu0 --without-flavour
    """
    from collidium.errors import ConfigurationError
    from collidium_plugins.jet_finder.table import add_jets

    try:
        with progress_bar("Finding jets (events)") as progress:
            added = add_jets(directory, config, flavours=not without_flavour, progress=progress)
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"{error.name} is not installed: pip install 'collidium[sim]'") from error
    record = {"table": added.path, "events": added.events, "jets": added.jets}
    show_record(added, record | {f"{name} jets": count for name, count in (added.flavours or {}).items()})
    if added.flavours is None and not json_wanted():
        note("Their flavour is null: they cannot be scored.")
