"""What a simulation produces: order, pipeline and event ids; its validation, and the commands of stages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from collidium.contracts.pipeline import PLACEHOLDERS, Pipeline, Stage
from collidium.contracts.task import EventRange
from collidium.errors import CollidiumError, InvalidInput
from collidium.order import Order, UnknownOrder, check
from collidium.pipelines.les_houches import LesHouches

#: Event ids have 32 bits in the hosted format.
_EVENT_IDS: Final = 2**32
_PLACEHOLDER: Final = re.compile("{(" + "|".join(PLACEHOLDERS) + ")}")


@dataclass(frozen=True, slots=True)
class Production:
    """An order and its pipeline. Event ids start at ``first_event``."""

    order: Order
    pipeline: Pipeline
    first_event: int = 0
    #: Whether the tables are directly in the output directory, without a card.
    flat: bool = False
    #: The file with hard processes, if any.
    lhe: LesHouches | None = None

    @property
    def events(self) -> EventRange:
        return EventRange(self.first_event, self.first_event + self.order.events)

    @property
    def identity(self) -> Mapping[str, object]:
        """What two runs must have in common for one to continue the other."""
        return self.order.parameters | {
            "first_event": self.first_event,
            "pipeline": self.pipeline.name,
            "pipeline_version": self.pipeline.version,
            "flat": self.flat,
            "lhe": self.lhe.sha256 if self.lhe else "",
        }

    def words(self, stage: Stage, *, python: str, work: str, processes: int) -> list[str]:
        """Return the command of a stage with its placeholders filled in."""
        values = self.order.parameters | {
            "first_event": self.first_event,
            "python": python,
            "work": work,
            "processes": processes,
            "lhe": self.lhe.sha256 if self.lhe else "",
        }
        return [_PLACEHOLDER.sub(lambda found: str(values[found[1]]), word) for word in stage.command]


def check_numbers(order: Order, first_event: int) -> None:
    """Raise UnknownOrder with all problems of the numbers of an order."""
    errors = []
    try:
        check(order, None)
    except InvalidInput as error:
        errors += error.errors
    if not 0 <= first_event <= _EVENT_IDS - max(order.events, 1):
        errors.append({"field": "first_event", "detail": f"event ids go from 0 to {_EVENT_IDS - 1}"})
    UnknownOrder.raise_for(errors)


def check_channel(order: Order, pipeline: Pipeline, lhe: LesHouches | None = None) -> None:
    """Raise UnknownOrder for a channel, a variation or a file that the pipeline cannot simulate."""
    if lhe is not None:
        if not pipeline.takes_lhe:
            detail = f"pipeline {pipeline.name} takes no Les Houches file"
            UnknownOrder.raise_for([{"field": "lhe", "detail": detail}])
        pipeline = replace(pipeline, channels=None, refused={})
    try:
        check(order, pipeline.channels, pipeline)
    except InvalidInput as error:
        UnknownOrder.raise_for(error.errors)


def can_simulate(order: Order, pipeline: Pipeline) -> bool:
    """Whether the pipeline knows the channel and the variation."""
    try:
        check_channel(order, pipeline)
    except UnknownOrder:
        return False
    return True


class CannotSimulate(CollidiumError):
    """The simulation cannot start or continue. The message gives the reason and what to do."""

    title = "Cannot simulate"


class StageFailed(CollidiumError):
    """A stage failed; ``errors`` has the last lines of its log."""

    title = "Stage failed"
