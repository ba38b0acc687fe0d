"""What a step of a request returns. The loop applies it to the request's row, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from collidium.datasets.cards import DatasetFile
from collidium.simulations.models import State, Step


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The runner has accepted the job."""

    handle: str


@dataclass(frozen=True, slots=True)
class Progressed:
    """The step is done, and the next one is due after a pause, at once if the request was cancelled."""

    step: Step
    pause: timedelta = timedelta(0)
    #: Whether the job has started.
    running: bool = False
    reason: str | None = None
    #: The number of parts whose files are stored, once it has changed.
    parts_stored: int | None = None
    #: Node-hours that the runner reports for a completed job, None if unknown.
    used: Decimal | None = None
    #: The files of the whole output, once they are stored.
    files: tuple[DatasetFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Postponed:
    """The step failed and is retried after a pause that grows with each failure."""

    trouble: str
    #: Whether the runner does not know the job.
    denied: bool = False
    #: Whether the worker that read the output died.
    worker_lost: bool = False


@dataclass(frozen=True, slots=True)
class Ended:
    """The request ends."""

    state: State
    reason: str | None = None
    #: Node-hours that the runner reports, None if unknown.
    used: Decimal | None = None
    output_hub_repo: str | None = None
    #: Whether the owner caused a failure.
    caused_by_owner: bool = False


Outcome = HandedOver | Progressed | Postponed | Ended
