"""Links of hits that the helix finder leaves."""

from __future__ import annotations

import numpy as np
import pytest

import collidium
from collidium.datasets import load
from collidium.demo import EVENTS_DIRECTORY
from collidium_tasks.tracking.baselines import edges, events_of, helix
from collidium_tasks.tracking_small import TIERS, TrackingSmallTask


def test_best_pairs_become_links_of_chains() -> None:
    """Hit 1 prefers 2 to 3, which then is free for 4; a pair below the cut is no link."""
    pairs = {(0, 1): 2.0, (1, 2): 3.0, (1, 3): 2.5, (4, 3): 1.0, (2, 5): edges.CUT - 0.1, (0, 2): 2.9}
    first, second = np.array(list(pairs)).T
    chains = edges.linked(first, second, np.array(list(pairs.values())), 6)
    assert chains.tolist() == [0, 0, 0, 4, 4, 5]


def test_links_find_more_than_helices_alone() -> None:
    hits = load(EVENTS_DIRECTORY, tables="tracker_hits")
    found = [
        collidium.score("tracking", finder.reconstruct({"tracker_hits": hits}), truth_from=EVENTS_DIRECTORY)
        for finder in (helix, edges)
    ]
    alone, linked = (made.scores["trackml_weighted_efficiency"] for made in found)
    assert alone + 0.02 < linked < 0.96
    assert found[1].scores["fake_rate"] < 0.05


def test_crowded_events_have_the_tracks_of_helices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edges, "MAX_HITS", 10)
    event = next(iter(events_of(load(EVENTS_DIRECTORY, tables="tracker_hits", events="0:1"))))
    assert edges.track_numbers(event).tolist() == helix.track_numbers(event).tolist()


def test_few_parameters_are_of_the_first_tier() -> None:
    hits = load(EVENTS_DIRECTORY, tables="tracker_hits", events="0:1")
    made = TrackingSmallTask().baselines()["edges"]({"tracker_hits": hits})
    assert 1_601 < made["n_params"][0].as_py() < TIERS[0]
