"""``collidium datasets mix``: several channels become one dataset for a blind benchmark."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from collidium.cli.output import json_option, note, print_json, print_record
from collidium.cli.progress import progress_bars

#: What is done -> what is shown of it, and whether it is counted in bytes.
_STEPS: Final = {"checking": ("Looking them through", True), "mixing": ("Mixing (events)", False)}


@click.command()
@click.argument(
    "directories",
    nargs=-1,
    required=True,
    metavar="DIRECTORY...",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)
@click.option("--config", required=True, metavar="NAME", help="What the mix is called, with its pileup.")
@click.option(
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where it goes; must not be there yet.",
)
@click.option("--first-event", type=int, default=0, metavar="ID", help="Id of the first event; default: 0.")
@json_option
def mix(directories: tuple[Path, ...], config: str, output: Path, first_event: int, as_json: bool) -> None:
    """Mix the events of all channels in each DIRECTORY into one dataset, in an order that chance decides.

    Its table channels says of which channel each event is: keep DIR to yourself, and publish it without
    truth. Use events that nobody has seen, made by one pipeline with seeds that nobody can guess.

    \b
    collidium datasets mix ttbar zmumu zee zprime --config anomaly_pu0 --output mix --first-event 90000
    collidium datasets publish mix --repo anomaly --withhold-truth 90000:100000 --truth-output truth
    collidium truth import anomaly --from truth --events 90000:100000
    """
    from collidium.datasets.publishing.mixing import Mixing
    from collidium.datasets.publishing.mixing import mix as mix_events

    with progress_bars(_STEPS) as tell:
        made = mix_events(Mixing(directories, config, output, first_event), tell)
    told = {"directory": str(made.directory), "config": made.config, "events": str(made.events)}
    if as_json:
        print_json(told | {"channels": made.channels})
        return
    print_record(told)
    note(
        f"{made.directory} holds the truth, too: `collidium datasets publish {made.directory} --repo NAME "
        f"--withhold-truth {made.events} --truth-output TRUTH` publishes it without."
    )
