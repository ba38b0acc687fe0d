"""The pages of the tasks are what their cards and the scores of their baselines make of them."""

from __future__ import annotations

import json
import re

import pytest
from docs.make_task_pages import FOLDER, SCORES, TASKS, task_pages
from tests.documents import ROOT

from collidium import plugins
from collidium.plugins import DISTRIBUTION

INSTALLED = plugins.load()
OWN = {
    name: INSTALLED.tasks().get(name)
    for name, origin in INSTALLED.tasks().origins.items()
    if INSTALLED.distribution_of(origin) == DISTRIBUTION
}


def test_the_pages_are_current() -> None:
    there = {path.name: path.read_text() for path in FOLDER.glob("*.md")}
    assert there == task_pages(), "run: python docs/make_task_pages.py"


def test_every_task_of_the_platform_has_a_page() -> None:
    assert sorted(TASKS) == sorted(OWN)


@pytest.mark.parametrize("name", TASKS)
def test_a_card_tells_how_it_is_scored_and_what_leaving_out_costs(name: str) -> None:
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


def test_every_link_of_the_pages_leads_somewhere() -> None:
    for page in FOLDER.glob("*.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
