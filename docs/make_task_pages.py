"""Writes docs/tasks from the cards of the platform's tasks: ``python docs/make_task_pages.py``.

What baselines score is read from docs/tasks/baseline_scores.json, which `docs/score_baselines.py` writes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from math import floor, log10
from pathlib import Path
from typing import Any, Final

from collidium import plugins, settings
from collidium.contracts.task import Card, Column, EventRange, Metric, Task
from collidium.presentation.tasks import column_cells
from collidium_tasks.training import TRAINERS

FOLDER: Final = Path(__file__).with_name("tasks")
SCORES: Final = FOLDER / "baseline_scores.json"
#: In the order in which they are shown.
TASKS: Final = ("tracking", "jets", "anomaly", "tracking_latency", "tracking_small", "data_loading")

#: Baselines that are only there with the extra `baselines`.
LEARNING: Final = frozenset({"forest", "trees"})
#: What stands behind a task's name for its scores with 200 pileup collisions.
PU200: Final = "_pu200"
#: Events of the piece of code that runs a baseline.
_SOME_EVENTS: Final = 10
#: Tasks whose one row a command measures: that command, and the file that it writes.
_MEASURED: Final = {"data_loading": ("collidium bench data-loading REPO", "data_loading.parquet")}

_WRITTEN: Final = "<!-- Written by docs/make_task_pages.py from the cards; do not edit. -->\n"


def task_pages() -> dict[str, str]:
    """Every page by its name."""
    installed = plugins.load().tasks().things
    scores = json.loads(SCORES.read_text())
    tasks = [installed[name] for name in TASKS]
    pages = {
        f"{task.card.name}.md": _page(
            task,
            {name: found for name, found in scores.items() if name.removesuffix(PU200) == task.card.name},
        )
        for task in tasks
    }
    return {"README.md": _contents(tasks, scores)} | pages


def _contents(tasks: list[Task], scores: Mapping[str, Any]) -> str:
    rows = [
        (f"[{task.card.name}]({task.card.name}.md)", task.card.title, f"`{task.card.primary_metric.name}`")
        for task in tasks
    ]
    return (
        "# The tasks that come with the platform\n\n"
        f"{_WRITTEN}\nAll are listed when a server first starts, and take submissions once their truth is "
        "imported. [Benchmarks](../benchmarks.md) describes what scores earn, "
        "[Write a task](../write-a-task.md) how to add one.\n\n"
        + _table(("task", "question", "primary metric"), rows)
        + "\n## Trained baselines\n\n"
        "`collidium train-baseline` trains one of these again from the training sets of "
        "[collidium seed](../seed.md), in less than a minute on two cores, download not included. It writes "
        "the file of trained weights or reference events that is in the package and in the baseline's model "
        "repository. `anomaly/weak` also learns from the mix, without its truth; each server has another "
        "mix, and so other weights. Scores are of events that were not used for training; the task's page "
        "names them.\n\n```sh\npip install 'collidium[baselines]'\n"
        "collidium train-baseline jets/deepsets --output deepsets.npz\n```\n\n"
        + _table(("baseline", "score", "difference"), [_learned(name, scores) for name in TRAINERS])
    )


def _learned(name: str, scores: Mapping[str, Any]) -> tuple[str, ...]:
    task, baseline = name.split("/")
    found = scores[task]
    metric = next(iter(found["baselines"][baseline]))
    difference = _score(found["differences"].get(baseline), sign="+")
    return (
        f"`{name}`",
        f"`{metric}` {_score(found['baselines'][baseline][metric])}",
        f"{difference} above `{found['against']}`" if difference else "",
    )


def _page(task: Task, scores: Mapping[str, Mapping[str, Any]]) -> str:
    """The page of a task, with its scores by name: that of the task, or with what stands behind it."""
    card = task.card
    sections = {
        "Data": _data(task),
        "Predictions": _table(("column", "type", "meaning"), [_column(column) for column in card.columns])
        + f"\n{card.left_out}\n",
        "Metrics": _metrics(task),
        **({"Run a baseline": _running(task)} if task.baselines() else {}),
        "What the baselines score": "\n".join(_baselines(task, *found) for found in scores.items()),
    }
    text = "".join(f"\n## {title}\n\n{section}" for title, section in sections.items())
    return f"# {card.title}\n\n{_WRITTEN}\n{card.description}\n{text}"


def _data(task: Task) -> str:
    card = task.card
    names = ", ".join(f"`{name}`" for name in card.inputs)
    command, file = _MEASURED.get(card.name, ("", "predictions.parquet"))
    return (
        f"Dataset config `{card.dataset}`, events {card.eval_events.start} to {card.eval_events.stop - 1}, "
        f"unless an operator imports other truth. The baselines use the tables {names}; "
        "[Dataset tables](../datasets.md) lists their columns.\n\n"
        "```sh\n"
        f"collidium tasks {card.name}\n"
        + (f"{command}\n" if command else "")
        + f"collidium check {card.name} {file}\n"
        f"collidium submit {card.name} {file}\n"
        "```\n"
    )


def _column(column: Column) -> tuple[str, str, str]:
    name, kind, meaning = column_cells(column)
    return f"`{name}`", kind, meaning


def _metrics(task: Task) -> str:
    card = task.card
    default = settings.Settings.model_fields["benchmark_reward"].default
    rows = [
        (
            f"`{metric.name}`" + (" (primary)" if metric is card.primary_metric else ""),
            "higher" if metric.higher_is_better else "lower",
            _reward(card, metric, default),
            metric.description,
        )
        for metric in card.metrics
    ]
    lines = [f"- `{metric.name}`: {_formula(metric)}" for metric in card.metrics]
    if card.pareto:
        first, second = card.pareto
        lines.append(f"\nThe leaderboard marks the Pareto front of `{first}` and `{second}`.")
    if card.ranks_measured:
        lines.append(
            "\nRanked and rewarded are [models that the platform runs](../submit-a-model.md): it measures "
            "what files of predictions report of themselves, which stand apart."
        )
    lines.append(f"\nComputed in `tasks/{type(task).__module__.replace('.', '/')}`.")
    return _table(("metric", "better", "reward", "meaning"), rows) + "\n" + "\n".join(lines) + "\n"


def _reward(card: Card, metric: Metric, default: Decimal) -> str:
    if not metric.higher_is_better:
        return "none"
    reward = Decimal(default if metric.reward is None else metric.reward)
    verified = metric.self_reported and not card.ranks_measured
    return f"{reward:f} once verified" if verified else f"{reward:f}"


def _formula(metric: Metric) -> str:
    source = f" ({metric.source})" if metric.source else ""
    missing = f" There is none when {metric.missing_when}." if metric.missing_when else ""
    return f"{metric.formula}{source}.{missing}"


def _running(task: Task) -> str:
    """Return an example that runs a baseline."""
    card, kind = task.card, type(task)
    first, *others = task.baselines()
    events = EventRange(card.eval_events.start, card.eval_events.start + _SOME_EVENTS)
    alike = [f"`{name}`" + (" (with the extra `baselines`)" if name in LEARNING else "") for name in others]
    more = f" Run {', '.join(alike)} the same way." if alike else ""
    return (
        "```python\n"
        "from collidium import datasets\n"
        "from collidium.client import write_predictions\n"
        f"from {kind.__module__} import {kind.__name__}\n\n"
        f"task = {kind.__name__}()\n"
        f'tables = datasets.load("REPO", "{card.dataset}", list(task.card.inputs), "{events}")\n'
        f'baseline = task.baselines()["{first}"]\n'
        'write_predictions(baseline(tables), "predictions.parquet")\n'
        "```\n\n"
        "`REPO` is a repository of the hub, or a directory. `PredictionsWriter` of "
        f"`collidium.client.predictions` writes more events than fit in memory.{more}\n"
    )


def _baselines(task: Task, scored: str, scores: Mapping[str, Any]) -> str:
    names = [metric.name for metric in task.card.metrics]
    differences = scores.get("differences") or {}
    rows = [
        (
            f"`{baseline}`",
            *([_score(differences.get(baseline), sign="+")] if differences else []),
            *(_score(found.get(name)) for name in names),
        )
        for baseline, found in scores["baselines"].items()
    ]
    against = [f"`{names[0]}` above that of `{scores['against']}`"] if differences else []
    made = ", ".join(f"{name} {version}" for name, version in scores["made_with"].items())
    return (
        _table(("baseline", *against, *(f"`{name}`" for name in names)), rows)
        + f"\nEvents {scores['events']} of `{scores['dataset']}`, made by the built-in pipeline "
        f"({scores['pipeline']}) and scored by version {scores['scorer_version']} of the task on "
        f"{scores['date']}, with {made}. Behind ± is the standard error. {_machine(task, scores)}"
        f"`python docs/score_baselines.py --tasks {scored}` reproduces the table.\n"
    )


def _machine(task: Task, scores: Mapping[str, Any]) -> str:
    """Return the machine on which times were measured, if the scores have any."""
    timed = any(name.startswith("seconds") for name in task.card.column_names)
    return f"Times are those of a machine of {scores['machine']}. " if timed else ""


def _score(found: Mapping[str, float] | None, sign: str = "") -> str:
    """A score with two digits of its standard error."""
    if found is None:
        return "" if sign else "none"
    score, error = found["score"], found["standard_error"]
    if not error:
        return f"{score:{sign}.4g}"
    digits = max(0, 1 - floor(log10(error)))
    return f"{score:{sign}.{digits}f} ± {error:.{digits}f}"


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [columns, tuple("---" for _ in columns), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |\n" for line in lines)


def write(folder: Path = FOLDER) -> None:
    """Write every page."""
    for name, text in task_pages().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    write()
