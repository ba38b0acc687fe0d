"""Cards of the models that `collidium seed` publishes."""

from __future__ import annotations

from collidium.seeding.baselines import model_card
from collidium_tasks.jets import JetsTask


def test_model_card_has_the_docstring_as_paragraphs() -> None:
    """Lines that are indented would be code in Markdown."""
    task = JetsTask()
    card = model_card(task, "deepsets", task.baselines()["deepsets"], "collidium")
    assert "description: The baseline deepsets of" in card
    assert "\n\n`collidium train-baseline jets/deepsets` trains it" in card
