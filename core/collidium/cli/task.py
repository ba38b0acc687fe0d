"""``collidium task``: the task list of the server, and tools for task authors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from collidium.cli.completion import complete_installed_tasks
from collidium.cli.context import on_platform
from collidium.cli.options import json_option
from collidium.cli.output import ColumnSpec, note, print_json, print_record, show_items
from collidium.cli.task_kit import check, new
from collidium.cli.tasks import print_card
from collidium.errors import NotFound

if TYPE_CHECKING:
    from collidium.platform import Platform
    from collidium.records import TaskCard, TaskStatus


@click.group()
def task() -> None:
    """Choose the benchmark tasks of the server; write a task.

    A task is installed when a plugin provides it, and listed when it is on the task list. Only listed tasks
    with truth accept submissions.
    """


task.add_command(new)
task.add_command(check)


@task.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the tasks that are installed or listed.

    \b
    collidium task list
    """
    from collidium.benchmarks.tasklist import list_tasks

    statuses = on_platform(lambda platform: list_tasks(platform.tasks))
    columns: dict[str, ColumnSpec] = {
        "task": "name",
        "installed": "installed",
        "listed": "listed",
        "from": "distribution",
        "scorer": "scorer_version",
        "truth": "truth_version",
        "accepts submissions": lambda status: status.reason or "yes",
    }
    show_items(statuses, columns, as_json=as_json)


@task.command()
@click.argument("name", shell_complete=complete_installed_tasks)
@json_option
def show(name: str, as_json: bool) -> None:
    """Show the card of task NAME, and why it accepts no submissions.

    \b
    collidium task show tracking
    """

    async def find(platform: Platform) -> dict[str, Any]:
        from collidium.benchmarks.tasklist import card_of, list_tasks

        statuses = {status.name: status for status in await list_tasks(platform.tasks)}
        if name not in statuses:
            raise NotFound(f"there is no task {name!r} (there are: {', '.join(statuses) or 'none'})")
        status = statuses[name]
        return {"status": status, "card": await card_of(platform, status) if status.installed else None}

    found = on_platform(find)
    if as_json:
        print_json(found)
    else:
        _print_card(found["status"], found["card"])


@task.command()
@click.argument("name", shell_complete=complete_installed_tasks)
@json_option
def add(name: str, as_json: bool) -> None:
    """Put the installed task NAME on the task list.

    \b
    collidium task add tracking
    """
    from collidium.benchmarks.tasklist import add_task

    _print_status(on_platform(lambda platform: add_task(platform.tasks, name)), as_json)


@task.command()
@click.argument("name", shell_complete=complete_installed_tasks)
@json_option
def remove(name: str, as_json: bool) -> None:
    """Remove task NAME from the task list; its submissions, scores and credits stay.

    \b
    collidium task remove tracking
    """
    from collidium.benchmarks.tasklist import remove_task

    _print_status(on_platform(lambda platform: remove_task(platform.tasks, name)), as_json)


def _print_status(status: TaskStatus, as_json: bool) -> None:
    if as_json:
        print_json(status)
        return
    note(f"Task {status.name} is {'listed' if status.listed else 'not listed any more'}.")
    if status.listed:
        note("Restart a server that was started before the plugin was installed.")
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
