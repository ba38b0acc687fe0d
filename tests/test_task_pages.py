"""The pages of the tasks are what their cards and the scores of their baselines make of them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from docs.make_task_pages import FOLDER, LEARNING, SCORES, TASKS, task_pages
from tests.documents import ROOT, code_blocks
from tests.tasks.jets.events import FLAVOURS, tables

from collidium import plugins
from collidium.datasets.writing import write_dataset
from collidium.plugins import DISTRIBUTION

INSTALLED = plugins.load()
OWN = {
    name: INSTALLED.tasks().get(name)
    for name, distribution in INSTALLED.tasks().distributions.items()
    if distribution == DISTRIBUTION
}


def test_the_pages_are_current() -> None:
    there = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    assert there == task_pages(), "run: python docs/make_task_pages.py"


def test_every_task_of_the_platform_has_a_page() -> None:
    assert sorted(TASKS) == sorted(OWN)


@pytest.mark.parametrize("name", TASKS)
def test_a_card_says_how_it_is_scored(name: str) -> None:
    card = OWN[name].card
    assert card.left_out
    assert [metric.name for metric in card.metrics if not metric.formula] == []


@pytest.mark.parametrize("name", TASKS)
def test_every_baseline_was_scored_by_the_scorer_that_there_is(name: str) -> None:
    scores = json.loads(SCORES.read_text())[name]
    assert scores["scorer_version"] == OWN[name].version, (
        f"run: python docs/score_baselines.py --tasks {name}"
    )
    assert set(OWN[name].baselines()) <= set(scores["baselines"])
    assert scores["baselines"]


def piece_of(name: str) -> str:
    """The code that a task's page shows."""
    (piece,) = (block.code for block in code_blocks(FOLDER / f"{name}.md") if block.language == "python")
    return piece


def test_the_piece_of_a_page_runs_a_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = OWN["jets"].card.eval_events.start
    write_dataset(tmp_path / "events", "ttbar_pu0", [tables(FLAVOURS * 5, first)], events_per_shard=20)
    monkeypatch.chdir(tmp_path)
    exec(piece_of("jets").replace("REPO", "events"), {})  # noqa: S102 -- our own page
    made = pq.read_table(tmp_path / "predictions.parquet")
    assert made.column_names == list(OWN["jets"].card.column_names)
    assert set(made["event_id"].to_pylist()) <= set(range(first, first + 10))
    assert made.num_rows


@pytest.mark.parametrize("name", [name for name in TASKS if OWN[name].baselines()])
def test_every_piece_makes_its_task(name: str) -> None:
    begin, _, rest = piece_of(name).partition("tables = ")
    names: dict[str, Any] = {}
    exec(begin, names)  # noqa: S102 -- our own page
    assert names["task"].card == OWN[name].card
    assert f'"{next(iter(OWN[name].baselines()))}"' in rest


def test_pages_show_which_baselines_need_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    every = {baseline for task in OWN.values() for baseline in task.baselines()}
    monkeypatch.setitem(sys.modules, "sklearn", None)
    assert every - {baseline for task in OWN.values() for baseline in task.baselines()} == LEARNING


def test_every_link_of_the_pages_leads_somewhere() -> None:
    for page in FOLDER.glob("*.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
