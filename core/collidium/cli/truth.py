"""``collidium truth``: the truth that submissions are scored against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import on_platform
from collidium.cli.options import (
    complete_installed_tasks,
    events_option,
    json_option,
    parse_options,
    truth_option,
)
from collidium.cli.output import note, show_items, show_record
from collidium.cli.progress import progress_bar

if TYPE_CHECKING:
    from collidium.benchmarks.truth.truth_versions import TruthRecord
    from collidium.contracts.task import EventRange
    from collidium.platform import Platform

COLUMNS: Final = {
    "task": "task",
    "truth": "version",
    "current": "current",
    "dataset": "dataset",
    "revision": "revision",
    "events": "events",
    "imported": "imported_at",
    "made with": "notes",
}


@click.group()
def truth() -> None:
    """Prepare the truth that submissions are scored against. It never leaves the server."""


@truth.command("import")
@click.argument("task", shell_complete=complete_installed_tasks)
@click.option("--from", "source", required=True, metavar="DIR|REPO", help="Directory, or dataset on the hub.")
@click.option("--config", metavar="NAME", help="Dataset config, for example ttbar_pu200.")
@events_option("Events to score; default: those of the task.")
@truth_option
@click.option(
    "--inputs",
    metavar="REPO[@REV]",
    help="Where the card says that the inputs of these events are; default: REPO of --from.",
)
@click.option("--train", metavar="REPO[@REV]", help="Where the card says that events to learn from are.")
@click.option(
    "--current/--not-current",
    default=True,
    help="Score the task's own challenge against it, or keep it for `challenge new --truth`.",
)
@click.option(
    "--public",
    is_flag=True,
    help="With --not-current: the events are public, and models of submissions are reproduced on them.",
)
@json_option
def import_(
    task: str,
    source: str,
    config: str | None,
    events: EventRange | None,
    options: tuple[str, ...],
    inputs: str | None,
    train: str | None,
    current: bool,
    public: bool,
    as_json: bool,
) -> None:
    """Prepare truth for TASK from a dataset, and score submissions against it.

    A private repository is read with your token: HF_TOKEN, or that of `collidium login`. Users see --inputs
    and --train, at the commits of now, with the command that downloads the events.

    \b
    collidium truth import tracking --from ./ttbar --events 90000:100000
    collidium truth import tracking --from alice/odd-ttbar --config ttbar_pu200
    collidium truth import tracking --from ./ttbar --option hits=uniform
    collidium truth import tracking --from ./public --events 0:1000 --not-current --public
    collidium truth import tracking --from ./truth --inputs alice/odd-eval --train alice/odd-ttbar@v1
    """
    if public and current:
        raise click.UsageError("--public needs --not-current: scores that count are of hidden events")

    async def run(platform: Platform) -> TruthRecord:
        from collidium.benchmarks.truth.truth_versions import import_truth
        from collidium.hub.sources import find_hub

        token = find_hub(platform.settings.hub).token
        with progress_bar("Preparing truth (events)") as progress:
            return await import_truth(
                *(platform, task, source),
                config=config,
                events=events,
                options=parse_options(options),
                inputs=inputs,
                train=train,
                token=token,
                current=current,
                public=public,
                progress=progress,
            )

    record = on_platform(run)
    show_record(record, {name: getattr(record, field) for name, field in COLUMNS.items()}, as_json=as_json)
    if current and not as_json:
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
    show_items(records, COLUMNS, as_json=as_json)
