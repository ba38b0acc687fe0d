"""``collidium task``: the backend's task list, and what helps to write a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from collidium.cli.cards import print_card
from collidium.cli.operate import on_platform
from collidium.cli.output import json_option, note, print_json, print_record, print_table
from collidium.cli.task_kit import check, new
from collidium.errors import NotFound

if TYPE_CHECKING:
    from collidium.platform import Platform
    from collidium.records import TaskCard, TaskStatus


@click.group()
def task() -> None:
    """Say which benchmark tasks the server offers; write one of your own.

    A task is installed when a plugin brings it, and listed when it is on the task list. Only listed tasks
    that have truth take submissions.
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
    if as_json:
        print_json(statuses)
        return
    print_table(
        ("task", "installed", "listed", "from", "scorer", "truth", "takes submissions"),
        (
            (
                s.name,
                s.installed,
                s.listed,
                s.distribution,
                s.scorer_version,
                s.truth_version,
                s.reason or "yes",
            )
            for s in statuses
        ),
    )


@task.command()
@click.argument("name")
@json_option
def show(name: str, as_json: bool) -> None:
    """Show what task NAME asks for, how it is scored and paid, and why it takes no submissions.

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
@click.argument("name")
@json_option
def add(name: str, as_json: bool) -> None:
    """Put the installed task NAME on the task list.

    \b
    collidium task add tracking
    """
    from collidium.benchmarks.tasklist import add_task

    _print_status(on_platform(lambda platform: add_task(platform.tasks, name)), as_json)


@task.command()
@click.argument("name")
@json_option
def remove(name: str, as_json: bool) -> None:
    """Take task NAME off the task list; its submissions, scores and credits stay.

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
        note("A server that was running before its plugin was installed must be started again to see it.")
    if status.listed and status.reason:
        note(f"It takes no submissions yet: {status.reason}.")


def _print_card(status: TaskStatus, card: TaskCard | None) -> None:
    more = {
        "from": status.distribution,
        "listed": status.listed,
        "scorer": status.scorer_version,
        "truth": status.truth_version,
    }
    if card is None:
        print_record({"task": status.name, **more, "takes submissions": f"no: {status.reason}"})
    else:
        print_card(card, more, status.reason)
