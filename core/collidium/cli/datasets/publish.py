"""``collidium datasets publish``: from a directory to a repository of the hub."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.output import json_option, note, print_json, print_record
from collidium.cli.progress import progress_bars

if TYPE_CHECKING:
    from collidium.datasets.publishing.preparing import Publication, Withholding
    from collidium.datasets.publishing.publication import Published

#: What is done -> what is shown of it, and whether it is counted in bytes.
_STEPS: Final = {
    "checking": ("Looking it through", True),
    "withholding": ("Withholding truth (events)", False),
    "sending": ("Sending", True),
}


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--repo", required=True, metavar="NAME", help="NAME, or NAMESPACE/NAME of an organisation.")
@click.option("--config", metavar="NAME", help="One config of several; or that of tables in no folder.")
@click.option("--private", is_flag=True, help="For nobody else to see.")
@click.option("--tag", metavar="TAG", help="Name of this version, for example v1.")
@click.option("--message", metavar="TEXT", help="Title of the commit.")
@click.option(
    "--card",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The repository's README.md; default: that of DIRECTORY, or one that is written.",
)
@click.option("--withhold-truth", "withheld", metavar="START:STOP", help="Events to be scored: no truth.")
@click.option(
    "--truth-output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where their truth goes, for `collidium truth import`.",
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
    withheld: str | None,
    truth_output: Path | None,
    hub: str | None,
    as_json: bool,
) -> None:
    """Publish the tables below DIRECTORY as a dataset of the hub, under your account.

    Everything is checked first. What the hub has is not sent again, so the same command goes on after a
    failure; a changed dataset becomes a new version.

    \b
    collidium datasets publish ./events --repo my-ttbar --tag v1
    collidium datasets publish ./flat --repo my-ttbar --config ttbar_pu0 --private
    collidium datasets publish ./events --repo benchmark --withhold-truth 90000:100000 --truth-output ./truth
    """
    from collidium.datasets.publishing.preparing import Publication

    publication = Publication(
        directory=directory,
        repo=repo,
        config=config,
        private=private,
        tag=tag,
        message=message,
        card=card,
        withholding=_withholding(withheld, truth_output),
        platform_tag=_platform_tag(),
    )
    published = _run(publication, hub)
    if as_json:
        print_json(published)
    else:
        _show(publication, published)


def _withholding(withheld: str | None, truth_output: Path | None) -> Withholding | None:
    from collidium.contracts.task import EventRange
    from collidium.datasets.publishing.preparing import Withholding

    if withheld is None and truth_output is None:
        return None
    if withheld is None or truth_output is None:
        raise click.UsageError("--withhold-truth and --truth-output go together")
    try:
        return Withholding(EventRange.parse(withheld), truth_output)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--withhold-truth") from None


def _platform_tag() -> str:
    from collidium import settings

    return settings.load().platform_tag


def _run(publication: Publication, endpoint: str | None) -> Published:
    from collidium.datasets.publishing.publication import publish
    from collidium.hub.client import Hub
    from collidium.hub.sources import find_hub

    hub = find_hub(endpoint)
    with progress_bars(_STEPS) as tell:
        return asyncio.run(publish(publication, Hub(hub.endpoint, hub.token or ""), tell))


def _show(publication: Publication, published: Published) -> None:
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
        note("All of it was there already.")
    if published.left_out:
        note(f"Not published, as they belong to no table: {', '.join(published.left_out[:10])}.")
    for line in published.notes:
        note(line)
    if withholding := publication.withholding:
        note(
            f"The truth of events {withholding.events} is in {withholding.truth}: keep it to yourself. "
            f"`collidium truth import TASK --from {withholding.truth} --events {withholding.events}` scores "
            "submissions against it."
        )
