"""``collidium seed``: datasets, truth and baselines for a server."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.context import quiet_settings
from collidium.cli.options import json_option
from collidium.cli.output import note, print_json, print_record, print_table
from collidium.cli.progress import duration_text, status_line

if TYPE_CHECKING:
    from collidium.platform import Platform
    from collidium.seeding.steps import Report, Seeding

    #: What is to be done, from the platform, whether the hub is its own, and where to report to.
    Prepare = Callable[[Platform, bool, Report], Seeding]

#: The last one is for the demo and for tests: it simulates nothing.
SIZES: Final = ("workshop", "release", "demo")


@click.command()
@click.option(
    "--size",
    type=click.Choice(SIZES),
    default=SIZES[0],
    show_default=True,
    help="How much is created; demo: what is in the package.",
)
@click.option("--tasks", metavar="NAME,…", default="", help="Tasks to open; default: all.")
@click.option("--dry-run", is_flag=True, help="Show what would be created, with its size and duration.")
@json_option
def seed(size: str, tasks: str, dry_run: bool, as_json: bool) -> None:
    """Fill this server: training sets, blind evaluation sets, truth and baselines.

    Simulates events with the pipeline acts, publishes them on the server's hub, which has to run, opens the
    tasks and submits their baselines as the account `baselines`, which earns nothing. The same command
    resumes after an interruption and does only what is missing.

    \b
    collidium seed --dry-run
    collidium seed
    collidium seed --size release --tasks jets,anomaly
    """
    names = [name.strip() for name in tasks.split(",") if name.strip()]

    def prepare(platform: Platform, local: bool, report: Report) -> Seeding:
        from collidium.seeding import checks, plan
        from collidium.seeding.access import State
        from collidium.seeding.steps import Seeding

        state = State.open(platform.settings.data_dir, size)
        chosen = checks.tasks_of(platform, names)
        return Seeding(platform, plan.SIZES[size], chosen, state, local, report)

    record = run_steps(prepare, size, dry_run=dry_run)
    if as_json:
        print_json(record | {"size": size})
    elif dry_run:
        show_plan(record)
    else:
        boards = ", ".join(record["tasks"])
        note(f"{record['steps']} steps done. Tasks that take submissions: {boards}.")


def run_steps(prepare: Prepare, size: str = "", *, dry_run: bool) -> dict[str, Any]:
    """Do what is missing of the steps, or only plan them; on the server's machine. Raises CollidiumError."""
    import asyncio

    with status_line() as update:

        def report(title: str, fraction: float, left: float) -> None:
            update(progress_text(title, fraction, left))

        return asyncio.run(_run(prepare, size, dry_run, _by_title(report)))


def progress_text(title: str, fraction: float, left: float) -> str:
    """How far a run is; before its pace is known, the time is that of idle cores."""
    from collidium.seeding.steps import MEASURED

    bound = "about" if fraction > MEASURED else "at least"
    return f"{title} ({fraction:.0%}, {bound} {duration_text(left)} left)"


def _by_title(report: Report) -> Report:
    """Pass on the first report of each step and, on a terminal, all others."""
    import sys

    last = ""

    def pass_on(title: str, fraction: float, left: float) -> None:
        nonlocal last
        if sys.stderr.isatty() or title != last:
            last = title
            report(title, fraction, left)

    return pass_on


async def _run(prepare: Prepare, size: str, dry_run: bool, report: Report) -> dict[str, Any]:
    from collidium.platform import Platform
    from collidium.seeding import checks
    from collidium.seeding.access import endpoint_of, held

    settings = quiet_settings()
    local = not settings.hub_url
    settings = settings.model_copy(update={"hub_url": endpoint_of(settings)})
    with nullcontext() if dry_run else held(settings.data_dir):
        async with Platform.open(settings) as platform:
            seeding = prepare(platform, local, report)
            problems = [problem async for problem in checks.problems_of(seeding, size)]
            if dry_run:
                return _plan(seeding) | {"problems": problems}
            checks.refuse(problems)
            for text in seeding.notes():
                note(text)
            done = await seeding.run()
    return {
        "steps": done,
        "tasks": [task.card.name for task in seeding.tasks],
        "datasets": [seeding.state.published[one.name] | {"dataset": one.name} for one in seeding.datasets],
    }


def _plan(seeding: Seeding) -> dict[str, Any]:
    datasets = [
        {
            "dataset": one.name,
            "config": one.config,
            "channels": [*one.channels],
            "events": one.events * len(one.channels),
            "scored": one.evaluated,
            "bytes": one.bytes,
        }
        for one in seeding.datasets
    ]
    return {
        "datasets": datasets,
        "tasks": {task.card.name: [*seeding.baselines(task)] for task in seeding.tasks},
        "notes": [*seeding.notes()],
        "bytes": seeding.bytes,
        "seconds": round(sum(step.seconds for step in seeding.steps())),
    }


def show_plan(record: dict[str, Any]) -> None:
    print_table(
        ("dataset", "config", "channels", "events to simulate", "scored", "MB"),
        (
            (
                *(one["dataset"], one["config"], len(one["channels"]), one["events"]),
                *(one["scored"], round(one["bytes"] / 1e6)),
            )
            for one in record["datasets"]
        ),
    )
    print_table(("task", "baselines"), ((name, ", ".join(found)) for name, found in record["tasks"].items()))
    for text in record["notes"]:
        note(text)
    for problem in record["problems"]:
        note(f"Problem: {problem}")
    time = f"about {duration_text(record['seconds'])}, several times that where other programs use the cores"
    print_record({"disk": f"{record['bytes'] / 1e9:.1f} GB", "time": time})
