"""``collidium task``: the task list of a server, and tools for task authors."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collidium.cli.context import on_platform
from collidium.cli.options import DIRECTORY, EXISTING_FILE, complete_installed_tasks, json_option
from collidium.cli.output import ColumnSpec, note, print_record, print_table, show_items, show_value
from collidium.cli.printing import print_card
from collidium.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collidium.platform import Platform
    from collidium.records import TaskCard, TaskStatus
    from collidium.testing.task_suite.suite import CheckOutcome


@click.group()
def task() -> None:
    """Choose the benchmark tasks of a server; develop a task.

    A task is installed if a plugin provides it, and listed if it is on the task list. Only listed tasks with
    truth accept submissions.
    """


@task.command("list")
@json_option
def list_() -> None:
    """List the tasks that are installed or listed.

    \b
    collidium task list
    """
    from collidium.challenges import tasklist

    statuses = on_platform(lambda platform: tasklist.list_tasks(platform.tasks))
    columns: dict[str, ColumnSpec] = {
        "task": "name",
        "installed": "installed",
        "listed": "listed",
        "from": "distribution",
        "scorer": "scorer_version",
        "truth": "truth_version",
        "accepts submissions": lambda status: status.reason or "yes",
    }
    show_items(statuses, columns)


@task.command()
@click.argument("name", shell_complete=complete_installed_tasks)
@json_option
def show(name: str) -> None:
    """Show the card of task NAME, and why it accepts no submissions, if so.

    \b
    collidium task show tracking
    """

    async def find(platform: Platform) -> dict[str, Any]:
        from collidium.challenges import tasklist

        statuses = {status.name: status for status in await tasklist.list_tasks(platform.tasks)}
        if name not in statuses:
            raise NotFound(f"there is no task {name!r} (there are: {', '.join(statuses) or 'none'})")
        status = statuses[name]
        return {
            "status": status,
            "card": await tasklist.card_of(platform, status) if status.installed else None,
        }

    show_value(on_platform(find), lambda found: _print_card(found["status"], found["card"]))


@task.command()
@click.argument("name", shell_complete=complete_installed_tasks)
@json_option
def add(name: str) -> None:
    """Put the installed task NAME on the task list.

    \b
    collidium task add tracking
    """
    from collidium.challenges import tasklist

    show_value(on_platform(lambda platform: tasklist.add_task(platform.tasks, name)), _print_status)


@task.command()
@click.argument("name", shell_complete=complete_installed_tasks)
@json_option
def remove(name: str) -> None:
    """Remove task NAME from the task list; its submissions, scores and credits stay.

    \b
    collidium task remove tracking
    """
    from collidium.challenges import tasklist

    show_value(on_platform(lambda platform: tasklist.remove_task(platform.tasks, name)), _print_status)


def _print_status(status: TaskStatus) -> None:
    note(f"Task {status.name} is {'listed' if status.listed else 'no longer listed'}.")
    if status.listed:
        note("Restart servers that were started before the plugin was installed.")
    if status.listed and status.reason:
        note(f"It accepts no submissions yet: {status.reason}.")


def _print_card(status: TaskStatus, card: TaskCard | None) -> None:
    more = {
        "from": status.distribution,
        "listed": status.listed,
        "scorer": status.scorer_version,
        "truth": status.truth_version,
    }
    if card is None:
        print_record({"task": status.name, **more, "accepts submissions": f"no: {status.reason}"})
    else:
        print_card(card, more, status.reason)


@task.command()
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory of the package; default: collidium-task-NAME.",
)
@json_option
def new(name: str, directory: Path | None) -> None:
    """Create an installable package with task NAME and passing tests.

    \b
    collidium task new vertexing
    """
    from collidium import plugins
    from collidium.testing.task_template import default_directory, write_package

    directory = directory or default_directory(name)
    written = write_package(name, directory, plugins.load().tasks().distributions)
    record = {"task": name, "directory": str(directory), "files": [str(path) for path in written]}
    show_value(record, _print_package)


def _print_package(record: dict[str, Any]) -> None:
    for path in record["files"]:
        click.echo(path)
    note(f"Now: cd {record['directory']}, pip install -e '.[test]', pytest. Then follow the README.")


@task.command()
@click.argument("name", shell_complete=complete_installed_tasks)
@click.option(
    "--from", "source", type=DIRECTORY, metavar="DIR", help="Dataset; default: the five built-in events."
)
@click.option("--config", metavar="NAME", help="Dataset config, for example ttbar_pu200.")
@click.option(
    "--predictions",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Valid predictions, for tasks without baselines.",
)
@json_option
@click.pass_context
def check(
    ctx: click.Context, name: str, source: Path | None, config: str | None, predictions: Path | None
) -> None:
    """Check that the installed task NAME satisfies its contract; exits with 1 if it does not.

    Checks card, truth, scoring, merging, problems, memory and hostile predictions on the first events of a
    dataset. Needs hypothesis (pip install 'collidium[test]').

    \b
    collidium task check tracking
    """
    from collidium.testing.task_suite import installed_suite

    suite = installed_suite(name, directory=source, config=config, predictions=predictions)
    with tempfile.TemporaryDirectory(prefix="collidium-check-") as scratch:
        # Otherwise hypothesis creates a directory in the working directory.
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", scratch)
        outcomes = list(suite)
    broken = [outcome for outcome in outcomes if outcome.state == "broken"]
    record = {
        "task": name,
        "scorer_version": suite.subject.task.version,
        "events": suite.subject.events,
        "conforms": not broken,
        "checks": [_record(outcome) for outcome in outcomes],
    }
    show_value(record, lambda _: _print_outcomes(name, outcomes))
    ctx.exit(1 if broken else 0)


def _record(outcome: CheckOutcome) -> dict[str, str | None]:
    return {
        "name": outcome.check.name,
        "promise": outcome.check.promise,
        "state": outcome.state,
        "detail": outcome.detail,
    }


def _print_outcomes(name: str, outcomes: Sequence[CheckOutcome]) -> None:
    print_table(
        ("verdict", "check", "promise"),
        ((outcome.state, outcome.check.name, outcome.check.promise) for outcome in outcomes),
    )
    broken = [outcome for outcome in outcomes if outcome.state == "broken"]
    for outcome in broken:
        note(f"\N{BULLET} {outcome.check.name}: {outcome.detail}")
    if broken:
        unchecked = sum(outcome.state == "not checked" for outcome in outcomes)
        more = f", and {unchecked} cannot be checked until that is fixed" if unchecked else ""
        note(f"Task {name} breaks {len(broken)} of {len(outcomes)} promises{more}.")
    else:
        note(f"Task {name} keeps all {len(outcomes)} promises.")
