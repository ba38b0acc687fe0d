"""A simulation request as its owner, its readers and operators see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from collidium.records import Moment, OperatedRequest, SimulationRequest

if TYPE_CHECKING:
    from collidium.simulations import models


def view(row: models.SimulationRequest, history: Sequence[models.HistoryLine] = ()) -> SimulationRequest:
    """What may be seen of a row; lists go without ``history``."""
    return SimulationRequest.of(row, **_derived(row, history))


def operator_view(row: models.SimulationRequest, history: Sequence[models.HistoryLine]) -> OperatedRequest:
    """All that may be seen of a row."""
    return OperatedRequest.of(row, runner_handle=row.handle, **_derived(row, history))


def _derived(row: models.SimulationRequest, history: Sequence[models.HistoryLine]) -> dict[str, Any]:
    return {
        "estimated_completion_seconds": max(1, round(row.node_seconds)),
        "cancel_requested": row.cancel_requested_at is not None,
        "output_is_mock": row.is_mock and row.output_hub_repo is not None,
        "timeline": tuple(Moment.of(line) for line in history),
    }
