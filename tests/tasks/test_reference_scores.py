"""Scores change only with the version of their task."""

from __future__ import annotations

import json

import pytest
from tests.tasks.reference_scores import COMMAND, FILE, reference, shipped_tasks

REFERENCES = json.loads(FILE.read_text())
TASKS = shipped_tasks()


@pytest.mark.parametrize("name", sorted(TASKS))
def test_scores_change_only_with_the_version(name: str) -> None:
    task, kept = TASKS[name], REFERENCES.get(name, {})
    if task.version != kept.get("version"):
        pytest.fail(
            f"{FILE.name} has scores of version {kept.get('version')} of {name}, whose version is "
            f"{task.version} now: run `{COMMAND}` and commit the file."
        )
    assert kept["scores"].keys() == {metric.name for metric in task.card.metrics}
    made = reference(task)
    for what in ("scores", "standard_errors"):
        # Other libraries and processors may round differently.
        if made[what] != pytest.approx(kept[what], rel=1e-6):
            pytest.fail(
                f"{what} of {name} differ under the same version {task.version}: raise `version` of "
                f"{type(task).__name__}, run `{COMMAND}` and commit the file.\n"
                f"kept: {kept[what]}\nnow:  {made[what]}"
            )


def test_no_reference_is_left_over() -> None:
    assert REFERENCES.keys() <= TASKS.keys(), f"run `{COMMAND}` and commit the file"
