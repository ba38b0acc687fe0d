"""Inspects a submitted file and plans how to score it; runs in a worker process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from collidium.contracts.task import Card, Problem
from collidium.scoring.blocks import Span, TruthBlock, plan
from collidium.scoring.predictions import ExtraColumns, FooterRequest, RowGroup, inspect


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A file, the card it must fit, and the truth it is to be compared with."""

    path: Path
    card: Card
    blocks: tuple[TruthBlock, ...]
    max_rows: int
    job_rows: int | None = None
    extra_columns: ExtraColumns = "refuse"


@dataclass(frozen=True, slots=True)
class Plan:
    """How to score a file."""

    rows: int
    groups: tuple[RowGroup, ...]
    #: What to stream; None when the file must be sorted by event first.
    spans: tuple[Span, ...] | None


def make_plan(request: PlanRequest) -> tuple[Plan | None, list[Problem]]:
    """A plan, or all problems that the footer shows."""
    footer, problems = inspect(
        FooterRequest(request.path, request.card, request.max_rows, request.extra_columns)
    )
    if footer is None:
        return None, problems
    spans = plan(request.blocks, footer, request.job_rows)
    return Plan(footer.rows, footer.groups, None if spans is None else tuple(spans)), []
