"""``collidium truth``: what submissions are scored against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from collidium.cli.operate import on_platform
from collidium.cli.output import json_option, note, print_json, print_record, print_table
from collidium.cli.progress import progress_bar

if TYPE_CHECKING:
    from collidium.benchmarks.truth.truth_versions import TruthRecord
    from collidium.contracts.task import EventRange
    from collidium.platform import Platform

COLUMNS = ("task", "truth", "current", "dataset", "revision", "events", "imported")


@click.group()
def truth() -> None:
    """Prepare the truth that submissions are scored against. It never leaves the server."""


@truth.command("import")
@click.argument("task")
@click.option("--from", "source", required=True, metavar="DIR|REPO", help="Directory, or dataset on the hub.")
@click.option("--config", metavar="NAME", help="Dataset config, for example ttbar_pu200.")
@click.option("--events", metavar="START:STOP", help="Events to score; default: those of the task.")
@json_option
def import_(task: str, source: str, config: str | None, events: str | None, as_json: bool) -> None:
    """Prepare truth for TASK from a dataset and make it the current version.

    A private repository is read with your token: HF_TOKEN, or that of `collidium login`.

    \b
    collidium truth import tracking --from ./ttbar --events 90000:100000
    collidium truth import tracking --from alice/odd-ttbar --config ttbar_pu200
    """
    wanted = _event_range(events)

    async def run(platform: Platform) -> TruthRecord:
        from collidium.benchmarks.truth.truth_versions import import_truth
        from collidium.hub.sources import find_hub

        token = find_hub(platform.settings.hub).token
        with progress_bar("Preparing truth (events)") as progress:
            return await import_truth(
                platform, task, source, config=config, events=wanted, token=token, progress=progress
            )

    record = on_platform(run)
    if as_json:
        print_json(record)
    else:
        print_record(_row(record))
        note(f"Task {record.task} is now scored against truth {record.version}.")


@truth.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List every version of truth, newest first.

    \b
    collidium truth list
    """
    from collidium.benchmarks.truth.truth_versions import list_truths

    records = on_platform(list_truths)
    if as_json:
        print_json(records)
    else:
        print_table(COLUMNS, ([*_row(record).values()] for record in records))


def _event_range(text: str | None) -> EventRange | None:
    from collidium.contracts.task import EventRange

    try:
        return None if text is None else EventRange.parse(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--events") from None


def _row(record: TruthRecord) -> dict[str, object]:
    values = (
        record.task,
        record.version,
        record.current,
        record.dataset,
        record.revision,
        record.events,
        record.imported_at,
    )
    return dict(zip(COLUMNS, values, strict=True))
