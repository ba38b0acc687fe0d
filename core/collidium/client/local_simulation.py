"""Simulates events on this machine; no server is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from collidium.order import DEFAULT_SEED, UnknownOrder, order_of
from collidium.pipelines.choice import installed
from collidium.pipelines.production import CannotSimulate, StageFailed
from collidium.pipelines.simulating import RunOptions, Simulated
from collidium.pipelines.simulating import simulate as _simulate
from collidium.pipelines.stages import Progress

__all__ = ["CannotSimulate", "Progress", "Simulated", "StageFailed", "UnknownOrder", "simulate"]


def simulate(
    channel: str | None = None,
    events: int | None = None,
    pileup: int | None = None,
    *,
    preset: str | None = None,
    seed: int | None = None,
    vary: str = "",
    first_event: int = 0,
    lhe: str | Path | None = None,
    output: str | Path | None = None,
    pipeline: str = "auto",
    runtime: str = "auto",
    processes: int | None = None,
    time_limit: float | None = None,
    flat: bool = False,
    progress: Callable[[Progress], None] | None = None,
    note: Callable[[str], None] | None = None,
) -> Simulated:
    """Simulate events into the directory ``output`` (default: the config's name), in the hosted format.

    Give ``channel``, ``events`` and ``pileup``, or a ``preset`` that stands for them. Events get the ids from
    ``first_event`` on. ``vary`` is a systematic variation of the detector, as ``field=0.99,material=1.1``.
    ``lhe`` is a Les Houches file whose hard processes are taken. ``time_limit`` is in seconds. ``progress``
    is called with the progress of each stage, ``note`` with messages. The same call again resumes where an
    earlier one stopped. Blocks until all is done, and stops what runs when it is interrupted.

    Raises UnknownOrder with all that is wrong with the order, CannotSimulate, StageFailed, and
    ConfigurationError for a pipeline that is not installed.
    """
    order = order_of(preset, channel, events, pileup, DEFAULT_SEED if seed is None else seed, vary)
    return _simulate(
        order,
        Path(output if output is not None else order.config),
        RunOptions(pipeline, runtime, processes, time_limit, flat),
        get=installed().get,
        report=progress or (lambda _: None),
        note=note or (lambda _: None),
        first_event=first_event,
        lhe=None if lhe is None else Path(lhe),
    )
