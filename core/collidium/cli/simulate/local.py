"""``collidium simulate`` without ``--remote``: events from this machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from collidium.cli.output import note, print_json, print_record
from collidium.cli.simulate.stages import duration_text, stage_progress

if TYPE_CHECKING:
    from collidium.pipelines.simulating import Simulated


#: Values of ``--runtime``.
RUNTIMES: Final = ("auto", "docker", "podman", "none")
_AUTO: Final = "auto"
#: Signals that end the command as the keyboard's does.
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


def simulate(
    preset: str | None,
    channel: str | None,
    events: int | None,
    pileup: int | None,
    seed: int | None,
    *,
    output: Path | None,
    pipeline: str | None,
    runtime: str | None,
    processes: int | None,
    time_limit: float | None,
    first_event: int,
    flat: bool,
    as_json: bool,
) -> None:
    """Simulate events into a directory and show the result."""
    from collidium import settings
    from collidium.order import DEFAULT_SEED, order_of
    from collidium.pipelines import simulating
    from collidium.pipelines.choice import installed

    order = order_of(preset, channel, events, pileup, DEFAULT_SEED if seed is None else seed)
    directory = output or Path(order.config)
    options = simulating.RunOptions(pipeline or _AUTO, runtime or _AUTO, processes, time_limit, flat)
    get = installed(settings.load().plugins_blocked).get
    with _ended_by_signals(directory), stage_progress() as progress:
        made = simulating.simulate(
            order, directory, options, get=get, report=progress, note=note, first_event=first_event
        )
    print_json(made) if as_json else _show(made, directory)


@contextmanager
def _ended_by_signals(directory: Path) -> Iterator[None]:
    """End the running stage with the command, and show how to resume."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in _ENDING}
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        note(f"Stopped; finished stages are kept in {directory}: the same command resumes from there.")
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _show(made: Simulated, directory: Path) -> None:
    last = made.first_event + made.events - 1
    print_record(
        {
            "dataset": directory,
            "config": made.config,
            "events": f"{made.events} (ids {made.first_event} to {last}), seed {made.seed}",
            "pipeline": f"{made.pipeline}, version {made.pipeline_version}",
            "tables": ", ".join(made.tables),
            "size": f"{made.size_bytes / 1e6:.1f} MB",
        }
    )
    if made.made_before:
        note("These events existed already.")
    else:
        note(f"Simulated in {duration_text(made.seconds)}.")
