"""``collidium task new`` and ``collidium task check``: for task authors."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium.cli.completion import complete_installed_tasks
from collidium.cli.options import DIRECTORY, EXISTING_FILE, json_option
from collidium.cli.output import note, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collidium.testing.task_suite.suite import Outcome


@click.command()
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Directory of the package; default: collidium-task-NAME.",
)
@json_option
def new(name: str, directory: Path | None, as_json: bool) -> None:
    """Create an installable package with task NAME and passing tests.

    \b
    collidium task new vertexing
    """
    from collidium import plugins
    from collidium.testing.task_template import default_directory, write_package

    taken = plugins.load().tasks().distributions
    directory = directory or default_directory(name)
    written = write_package(name, directory, taken)
    if as_json:
        print_json({"task": name, "directory": str(directory), "files": [str(path) for path in written]})
        return
    for path in written:
        click.echo(path)
    note(f"Now: cd {directory}, pip install -e '.[test]', pytest. Its README explains what to change.")


@click.command()
@click.argument("name", shell_complete=complete_installed_tasks)
@click.option(
    "--from", "source", type=DIRECTORY, metavar="DIR", help="Dataset; default: the five built-in events."
)
@click.option("--config", metavar="NAME", help="Dataset config, for example ttbar_pu200.")
@click.option(
    "--predictions",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Valid predictions, for tasks without baseline.",
)
@json_option
@click.pass_context
def check(
    ctx: click.Context,
    name: str,
    source: Path | None,
    config: str | None,
    predictions: Path | None,
    as_json: bool,
) -> None:
    """Check that the installed task NAME satisfies its contract; ends with 1 if it does not.

    Checks card, truth, scoring, merging, problems, memory and hostile predictions on the first events of a
    dataset. Needs hypothesis (pip install 'collidium[test]').

    \b
    collidium task check tracking
    """
    from collidium.testing.task_suite.installed import installed_suite

    suite = installed_suite(name, directory=source, config=config, predictions=predictions)
    with tempfile.TemporaryDirectory(prefix="collidium-check-") as scratch:
        # hypothesis creates a directory wherever it is used.
        os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", scratch)
        outcomes = list(suite)
    broken = [outcome for outcome in outcomes if outcome.state == "broken"]
    if as_json:
        print_json(
            {
                "task": name,
                "scorer_version": suite.subject.task.version,
                "events": suite.subject.events,
                "conforms": not broken,
                "checks": [_record(outcome) for outcome in outcomes],
            }
        )
    else:
        _show(name, outcomes)
    ctx.exit(1 if broken else 0)


def _record(outcome: Outcome) -> dict[str, str | None]:
    return {
        "name": outcome.check.name,
        "promise": outcome.check.promise,
        "state": outcome.state,
        "detail": outcome.detail,
    }


def _show(name: str, outcomes: Sequence[Outcome]) -> None:
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
