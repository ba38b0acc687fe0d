"""``collidium seed``: fill a server with datasets, truth and baselines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.context import quiet_settings
from collidium.cli.options import json_option
from collidium.cli.output import note, print_record, print_table, show_value
from collidium.cli.progress import StepLines, status_line
from collidium.presentation.quantities import duration_text

if TYPE_CHECKING:
    from collidium.platform import Platform
    from collidium.seeding.steps import Report, Seeding

    #: Creates a :class:`Seeding` from the platform, whether the hub is its own, and the report function.
    Prepare = Callable[[Platform, bool, Report], Seeding]

#: ``demo``, for the demo and tests, simulates nothing.
SIZES: Final = ("workshop", "release", "demo")


@click.command()
@click.option(
    "--size",
    type=click.Choice(SIZES),
    default=SIZES[0],
    show_default=True,
    help="How much to create; demo: the events of the package.",
)
@click.option("--tasks", metavar="NAME,…", default="", help="Tasks to open; default: all.")
@click.option("--dry-run", is_flag=True, help="Show what would be created, with its size and duration.")
@json_option
def seed(size: str, tasks: str, dry_run: bool) -> None:
    """Fill this server with training sets, evaluation sets without truth, truth and baselines.

    Simulates events with the pipeline acts, publishes them on the server's hub, which must be running, opens
    the tasks and submits their baselines as the account `baselines`, which earns no credits. The same command
    resumes after an interruption.

    \b
    collidium seed --dry-run
    collidium seed
    collidium seed --size release --tasks jets,anomaly
    """
    names = [name.strip() for name in tasks.split(",") if name.strip()]

    def prepare(platform: Platform, local: bool, report: Report) -> Seeding:
        from collidium.seeding import checks, plan
        from collidium.seeding.access import SeedState
        from collidium.seeding.steps import Seeding

        state = SeedState.open(platform.settings.data_dir, size)
        chosen = checks.tasks_of(platform, names)
        return Seeding(platform, plan.SIZES[size], chosen, state, local, report)

    record = run_steps(prepare, size, dry_run=dry_run)
    show_value(record | {"size": size}, print_plan if dry_run else _print_done)


def _print_done(record: dict[str, Any]) -> None:
    note(f"{record['steps']} steps done. Tasks that accept submissions: {', '.join(record['tasks'])}.")


def run_steps(prepare: Prepare, size: str = "", *, dry_run: bool) -> dict[str, Any]:
    """Run the missing steps on the server's machine, or only plan them. Raises CollidiumError."""
    import asyncio
    import sys

    if not sys.stderr.isatty():
        lines = StepLines()

        def show(title: str, fraction: float, left: float) -> None:
            lines.show(title, progress_text(title, fraction, left))

        return asyncio.run(_run(prepare, size, dry_run, show, lines.remind))
    with status_line() as update:

        def report(title: str, fraction: float, left: float) -> None:
            update(progress_text(title, fraction, left))

        return asyncio.run(_run(prepare, size, dry_run, report))


def progress_text(title: str, fraction: float, left: float) -> str:
    """Describe the progress of a run. The first estimate of the time assumes idle cores."""
    from collidium.seeding.steps import MEASURED

    bound = "about" if fraction > MEASURED else "at least"
    return f"{title} ({fraction:.0%}, {bound} {duration_text(left)} left)"


@asynccontextmanager
async def each_second(act: Callable[[], None]) -> AsyncIterator[None]:
    """Call a function once a second meanwhile."""
    import asyncio

    async def repeat() -> None:
        while True:
            await asyncio.sleep(1)
            act()

    repeating = asyncio.create_task(repeat())
    try:
        yield
    finally:
        repeating.cancel()


async def _run(
    prepare: Prepare, size: str, dry_run: bool, report: Report, remind: Callable[[], None] = lambda: None
) -> dict[str, Any]:
    from collidium.challenges import tasklist
    from collidium.model_runs import model_runners
    from collidium.seeding import checks
    from collidium.seeding.access import endpoint_of, exclusive

    settings = quiet_settings()
    local = not settings.hub_url
    settings = settings.model_copy(update={"hub_url": endpoint_of(settings)})
    with nullcontext() if dry_run else exclusive(settings.data_dir):
        async with tasklist.open_platform(settings) as platform:
            seeding = prepare(platform, local, report)
            problems = [problem async for problem in checks.problems_of(seeding, size)]
            closing = [text async for text in checks.closing_texts(seeding)]
            if dry_run:
                plan = planned(seeding)
                return plan | {"notes": [*plan["notes"], *closing], "problems": problems}
            checks.raise_problems(problems)
            for text in (*seeding.notes(), *closing):
                note(text)
            async with each_second(remind):
                done = await seeding.run()
            models = await model_runners.waiting()
            if models.number and (reason := await model_runners.why_none()):
                note(
                    f"{models.number} models wait until a server or worker runs them; now none does: {reason}"
                )
    return {
        "steps": done,
        "tasks": [task.card.name for task in seeding.tasks],
        "datasets": [seeding.state.published[one.name] | {"dataset": one.name} for one in seeding.datasets],
    }


def planned(seeding: Seeding) -> dict[str, Any]:
    """Return what the run would create, for ``--dry-run`` and the documents."""
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
        "cores": seeding.cores,
        "seconds": round(sum(step.seconds for step in seeding.steps())),
    }


def print_plan(record: dict[str, Any]) -> None:
    """Print the result of a dry run."""
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
    cores = "an idle core" if record["cores"] == 1 else f"{record['cores']} idle cores"
    time = f"about {duration_text(record['seconds'])} on {cores}"
    print_record({"disk": f"{record['bytes'] / 1e9:.1f} GB", "time": time})
