"""Scores on a model card: other entries are kept, and the same scores again change nothing."""

from __future__ import annotations

from typing import Any

import pytest
from huggingface_hub import ModelCard

from collidium.client.model_scores import with_result
from collidium.errors import InvalidInput, UnusableDataset

CARD = """---
license: mit
tags:
- collidium
model-index:
- name: helix
  results:
  - task:
      type: other
    dataset:
      name: Other
      type: lab/other
    metrics:
    - type: accuracy
      value: 0.5
      note: what the hub does not know
---

# Helix

Text --- of the card.
"""


def result(value: float, submission: str = "a", board: str = "jets-2027") -> dict[str, Any]:
    return {
        "task": {"type": "jets"},
        "dataset": {"name": "Jets", "type": "lab/jets"},
        "metrics": [{"type": "btag_auc", "value": value}],
        "source": {"url": f"http://host/leaderboard/{board}#s-{submission}", "name": "Collidium"},
    }


def test_a_result_joins_others_and_is_replaced_by_the_next() -> None:
    first = with_result(CARD, "helix", result(0.7))
    assert with_result(first, "helix", result(0.7)) == first
    second = with_result(first, "helix", result(0.8, "b"))
    both = with_result(second, "helix", result(0.9, board="jets"))
    card = ModelCard(both)
    assert [one.metric_value for one in card.data.eval_results or ()] == [0.5, 0.8, 0.9]
    assert "what the hub does not know" in both
    assert both.endswith("\n# Helix\n\nText --- of the card.\n")
    assert card.data.license == "mit"


def test_a_model_without_a_card_gets_one() -> None:
    card = ModelCard(with_result("", "helix", result(0.7)))
    assert card.data.model_name == "helix"
    assert card.text.strip() == "# helix"


@pytest.mark.parametrize("index", ["5", "[]", "[{}]", "[{results: 3}]", "[{results: [text]}]"])
def test_a_card_that_cannot_be_read_stays(index: str) -> None:
    with pytest.raises(InvalidInput, match="model-index of helix"):
        with_result(f"---\nmodel-index: {index}\n---\n", "helix", result(0.7))
    with pytest.raises(UnusableDataset):
        with_result("---\na: [\n---\n", "helix", result(0.7))
