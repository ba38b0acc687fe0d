"""Simulate events on this machine without a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Unpack

from collidium.order import OrderOptions, UnknownOrder, order_of
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
    **options: Unpack[OrderOptions],
) -> Simulated:
    """Simulate events into a directory, in the format of the published datasets.

    A repeated call resumes an interrupted one. Blocks until all events are simulated; an interrupt stops the
    current stage.

    Parameters
    ----------
    channel, events, pileup
        Required unless ``preset`` is given.
    preset : str, optional
        Name of a preset, instead of the first three.
    first_event : int
        Id of the first event.
    lhe : str or pathlib.Path, optional
        Les Houches file with the hard processes.
    output : str or pathlib.Path, optional
        Directory of the dataset; by default the name of the config.
    pipeline : str
        Name of a pipeline; ``auto`` selects ``odd`` if a container engine has its image, otherwise ``acts``.
    runtime : str
        Where the stages run: ``docker``, ``podman``, ``none`` or ``auto``.
    processes : int, optional
        Processes per stage; by default one per core, at most 8.
    time_limit : float, optional
        Seconds; unlimited by default.
    flat : bool
        Write the tables directly into ``output``, without a card.
    progress, note : callable, optional
        Called with the progress of each stage, and with messages.
    **options
        The other fields of an order: ``seed`` (42 by default), ``vary`` (for example
        ``field=0.99,material=1.1``).

    Returns
    -------
    Simulated

    Raises
    ------
    UnknownOrder
        With all problems of the order.
    CannotSimulate
        If nothing on this machine can simulate it.
    StageFailed
        If a stage fails or exceeds the time limit.
    ConfigurationError
        If the pipeline is not installed.
    """
    order = order_of(preset, channel, events, pileup, **options)
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
