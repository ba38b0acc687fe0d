"""``collidium datasets publish`` and ``mix``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import hub_client
from collidium.cli.options import DIRECTORY, EVENTS, EXISTING_DIRECTORY, EXISTING_FILE, json_option
from collidium.cli.output import json_wanted, note, print_record, show_record, show_value
from collidium.cli.progress import progress_bars

if TYPE_CHECKING:
    from collidium.contracts.task import EventRange
    from collidium.datasets.publishing.preparing import Publication, Withholding
    from collidium.datasets.publishing.publication import Published


#: The label of the progress bar of each step, and whether it counts bytes.
_STEPS: Final = {
    "checking": ("Checking", True),
    "withholding": ("Withholding truth (events)", False),
    "sending": ("Sending", True),
}


@click.command()
@click.argument("directory", type=EXISTING_DIRECTORY)
@click.option("--repo", required=True, metavar="NAME", help="NAME, or NAMESPACE/NAME of an organisation.")
@click.option(
    "--config",
    metavar="NAME",
    help="One of several configs, or the config of tables that are not in a folder.",
)
@click.option("--private", is_flag=True, help="Make the repository private.")
@click.option("--tag", metavar="TAG", help="Name of this version, for example v1.")
@click.option("--message", metavar="TEXT", help="Title of the commit.")
@click.option(
    "--card",
    type=EXISTING_FILE,
    metavar="FILE",
    help="README.md of the repository; default: that of DIRECTORY, or a generated one.",
)
@click.option(
    "--withhold-truth", "withheld", type=EVENTS, metavar="START:STOP", help="Events to publish without truth."
)
@click.option(
    "--truth-output",
    type=DIRECTORY,
    metavar="DIR",
    help="Directory for their truth, for `collidium truth import`.",
)
@click.option("--hub", metavar="URL", help="Address of the hub, if not that of the environment.")
@json_option
def publish(
    directory: Path,
    repo: str,
    config: str | None,
    private: bool,
    tag: str | None,
    message: str | None,
    card: Path | None,
    withheld: EventRange | None,
    truth_output: Path | None,
    hub: str | None,
) -> None:
    """Publish the tables in DIRECTORY as a dataset of the hub, under your account.

    All files are checked first. Files that the hub already has are not uploaded again, so the same command
    resumes after a failure. A changed dataset becomes a new version.

    \b
    collidium datasets publish ./events --repo my-ttbar --tag v1
    collidium datasets publish ./flat --repo my-ttbar --config ttbar_pu0 --private
    collidium datasets publish ./events --repo benchmark --withhold-truth 90000:100000 --truth-output ./truth
    """
    import asyncio

    from collidium import settings
    from collidium.datasets.publishing.preparing import Publication
    from collidium.datasets.publishing.publication import publish as publish_dataset
    from collidium.hub import offline

    offline.require_online("publishing")
    publication = Publication(
        directory=directory,
        repo=repo,
        config=config,
        private=private,
        tag=tag,
        message=message,
        card=card,
        withholding=_withholding(withheld, truth_output),
        platform_tag=settings.load().tag,
    )
    with progress_bars(_STEPS) as update:
        published = asyncio.run(publish_dataset(publication, hub_client(hub), update))
    show_value(published, partial(_print_published, publication))


def _withholding(withheld: EventRange | None, truth_output: Path | None) -> Withholding | None:
    from collidium.datasets.publishing.preparing import Withholding

    if withheld is None and truth_output is None:
        return None
    if withheld is None or truth_output is None:
        raise click.UsageError("--withhold-truth and --truth-output go together")
    return Withholding(withheld, truth_output)


def _print_published(publication: Publication, published: Published) -> None:
    print_record(
        {
            "dataset": published.repo,
            "url": published.url,
            "revision": published.revision,
            "tag": published.tag,
            "private": published.private,
            "configs": [f"{config.name} ({config.events} events)" for config in published.configs],
        }
    )
    if not published.changed:
        note("The dataset has not changed since the last version.")
    if published.left_out:
        note(f"Not published, because they are not tables: {', '.join(published.left_out[:10])}.")
    for line in published.notes:
        note(line)
    if withholding := publication.withholding:
        note(
            f"The truth of events {withholding.events} is in {withholding.truth}: keep it private. "
            f"`collidium truth import TASK --from {withholding.truth} --events {withholding.events}` scores "
            "submissions against it."
        )


#: The same for ``mix``.
_MIX_STEPS: Final = {"checking": ("Checking", True), "mixing": ("Mixing (events)", False)}


@click.command()
@click.argument(
    "directories",
    nargs=-1,
    required=True,
    metavar="DIRECTORY...",
    type=EXISTING_DIRECTORY,
)
@click.option("--config", required=True, metavar="NAME", help="Name of the mixed config, with its pileup.")
@click.option(
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="New directory for the dataset.",
)
@click.option(
    "--signal",
    "signals",
    multiple=True,
    metavar="CHANNEL",
    help="Include only a few events of CHANNEL, matched to the others in visible energy; repeatable.",
)
@click.option(
    "--signal-percent",
    type=float,
    default=1.0,
    metavar="PERCENT",
    help="Percentage of all signals in the mix; default: 1.",
)
@click.option("--first-event", type=int, default=0, metavar="ID", help="Id of the first event; default: 0.")
@json_option
def mix(
    directories: tuple[Path, ...],
    config: str,
    output: Path,
    signals: tuple[str, ...],
    signal_percent: float,
    first_event: int,
) -> None:
    """Mix the events of all channels in each DIRECTORY into one dataset, in random order.

    The table channels contains the channel of each event: keep DIR private, and publish it without truth. Use
    unpublished events, simulated by one pipeline with secret seeds.

    \b
    collidium datasets mix ttbar zee jets zprime --config anomaly_pu0 --output mix --first-event 90000
    collidium datasets mix ttbar zee jets zprime --config anomaly_pu0 --output mix --signal zprime
    collidium datasets publish mix --repo anomaly --withhold-truth 90000:100000 --truth-output truth
    collidium truth import anomaly --from truth --events 90000:100000
    """
    from collidium.datasets.publishing.mixing import Mixing
    from collidium.datasets.publishing.mixing import mix as mix_events

    with progress_bars(_MIX_STEPS) as update:
        mixing = Mixing(
            directories, config, output, first_event, signals=signals, signal_percent=signal_percent
        )
        made = mix_events(mixing, update)
    record = {"directory": str(made.directory), "config": made.config, "events": str(made.events)}
    show_record(record | {"channels": made.channels}, record)
    if not json_wanted():
        note(
            f"{made.directory} contains the truth: `collidium datasets publish {made.directory} --repo NAME "
            f"--withhold-truth {made.events} --truth-output TRUTH` publishes it without the truth."
        )
