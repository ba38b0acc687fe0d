"""``collidium start``: write a starter project for a task.

The templates in ``files/`` are used for every task. Templates in ``start/NAME`` of the package that defines
the task replace those of the same name.

Nothing is filled into the files: task and data are in ``task.json``.
"""

from __future__ import annotations

import json
import sys
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.context import client
from collidium.cli.options import complete_tasks, json_option
from collidium.cli.output import json_wanted, note, show_value
from collidium.errors import InvalidInput
from collidium.presentation.tasks import data_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from collidium.client import TaskCard, TaskData
    from collidium.contracts.task import Task

_SUFFIX: Final = ".template"
#: The form of an entry of task.json.
_ENTRY: Final = json.dumps(
    {
        "training": {
            "source": "NAMESPACE/NAME or a directory",
            "hub": "URL or null",
            "revision": "BRANCH, TAG or COMMIT, or null",
            "config": "ttbar_pu0",
            "tables": ["tracker_hits"],
            "events": [0, 1000],
            "has_truth": True,
        }
    }
)


@click.command()
@click.argument("name", shell_complete=complete_tasks)
@click.argument("directory", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@json_option
def start(name: str, directory: Path | None) -> None:
    """Write a starter project for task NAME of the server to the new directory DIR, by default NAME.

    Its train.py runs unchanged: it fits a simple model to some training events, scores it on held-out events,
    and predicts the events that submit.sh submits. Change model.py first.

    \b
    collidium start tracking
    collidium start jets ./my-tagger
    """
    from collidium import plugins

    directory = directory or Path(name)
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise InvalidInput(f"{directory} exists already: name a new or empty directory")
    with client() as server:
        card, backend = server.task(name), server.backend
    task = plugins.load().tasks().things.get(card.name)  # NAME may be a challenge of the task
    description = _description(card, task, backend)
    texts = {
        "README.md": _readme(name, card, description),
        "task.json": json.dumps(description, indent=2) + "\n",
        "submit.sh": _submit(name, backend),
    }
    texts |= _templates(files(__name__) / "files")
    if task is not None and (module := sys.modules.get(type(task).__module__)) and module.__package__:
        texts |= _templates(files(module.__package__) / "start" / card.name)
    directory.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        (directory / file).write_text(text, encoding="utf-8")
    record = {"task": name, "directory": directory, "files": [directory / file for file in texts]}
    show_value(record, _print_project)
    if card.training_data is None and not json_wanted():
        note(_without_training_data(description))
    if task is None and not json_wanted():
        note(f"To score on this machine, install the plugin of task {card.name}.")


def _print_project(record: dict[str, Any]) -> None:
    for file in record["files"]:
        click.echo(file)
    note(f"Now: cd {record['directory']} && python train.py")


def _templates(directory: Traversable) -> dict[str, str]:
    """Read the templates in a directory, by the names of the files to write."""
    found = sorted(directory.iterdir(), key=lambda file: file.name) if directory.is_dir() else []
    named = {file.name.removesuffix(_SUFFIX): file for file in found if file.name.endswith(_SUFFIX)}
    return {name: file.read_text(encoding="utf-8") for name, file in named.items()}


def _description(card: TaskCard, task: Task | None, backend: str) -> dict[str, Any]:
    truth = task.card.truth_sources if task else ()
    training = _source(card.training_data, backend)
    if training is not None:
        training["has_truth"] = set(truth) <= set(training["tables"])
    return {
        "task": card.name,
        "inputs": card.inputs,
        "training": training or _built_in([*card.inputs, *truth]),
        "evaluation": _source(card.evaluation_data, backend) or _practised_on(card, truth),
    }


def _source(data: TaskData | None, backend: str) -> dict[str, Any] | None:
    """Return the arguments of `collidium.datasets.download`."""
    if data is None:
        return None
    return {
        "source": data.repository,
        "hub": data.hub or f"{backend}/hub",
        "revision": data.revision,
        "config": data.config,
        "tables": data.tables,
        "events": [data.events.start, data.events.stop],
    }


def _built_in(tables: list[str]) -> dict[str, Any] | None:
    """Return the source of the packaged events that have all tables; None if none have."""
    from collidium.datasets import Dataset, sample

    directory = sample.packaged(tables)
    if directory is None:
        return None
    ids = Dataset(directory).table(tables[0]).event_ids
    here = {"source": str(directory), "hub": None, "revision": None, "config": None}
    events = [int(min(ids)), int(max(ids)) + 1]
    return {**here, "tables": list(dict.fromkeys(tables)), "events": events, "has_truth": True}


def _practised_on(card: TaskCard, truth: Sequence[str]) -> dict[str, Any] | None:
    """Return the source of the evaluated events, if they are of the package; None for others."""
    here = _built_in([*card.inputs, *truth]) if card.practice else None
    events = [card.eval_events.start, card.eval_events.stop]
    if here is None or events[0] < here["events"][0] or events[1] > here["events"][1]:
        return None
    del here["has_truth"]
    return here | {"tables": [*card.inputs], "events": events}


def _without_training_data(description: dict[str, Any]) -> str:
    """Say what train.py learns from if the server names no training data."""
    used = "there are no packaged events with its tables"
    if (training := description["training"]) is not None:
        first, stop = training["events"]
        used = f"train.py uses the {stop - first} events that come with the package, for a first try"
    return f"The server names no training data of this task: {used}. Name your own in task.json: {_ENTRY}"


def _readme(name: str, card: TaskCard, description: dict[str, Any]) -> str:
    data = "\n\n".join(f"{text}:\n\n```sh\n{command}\n```" for text, command in data_lines(card))
    own = "" if card.training_data else f"\n\n{_without_training_data(description)}"
    columns = "\n".join(f"- `{column.name}` ({column.kind}): {column.description}" for column in card.columns)
    return f"""# {card.title}

{card.description}

`python train.py` fits `model.py`, scores it here on held-out events, and writes `predictions.parquet`;
`sh submit.sh` submits it. `{card.primary_metric}` is the primary metric; `collidium tasks {name}` shows all.

## Data

{data}{own}

## Predictions

{columns}
"""


def _submit(name: str, backend: str) -> str:
    return f"""#!/bin/sh
# Submits the predictions with your login. Further options are passed on, such as --model-repo NAMESPACE/NAME.
cd "$(dirname "$0")" || exit
export PLATFORM_BACKEND="${{PLATFORM_BACKEND:-{backend}}}"
exec collidium submit {name} predictions.parquet "$@"
"""
