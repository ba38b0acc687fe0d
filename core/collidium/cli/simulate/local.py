"""``collidium simulate`` without ``--remote``: events from this machine."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from collidium.cli.output import note, print_json, print_record
from collidium.cli.simulate.stages import shown, told_time

if TYPE_CHECKING:
    from collidium.pipelines.simulating import Simulated


import re

import click

#: What ``--runtime`` may be.
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
    """Simulate events into a directory, and show what was made."""
    from collidium import settings
    from collidium.order import DEFAULT_SEED, order_of
    from collidium.pipelines import simulating
    from collidium.pipelines.choice import installed

    order = order_of(preset, channel, events, pileup, DEFAULT_SEED if seed is None else seed)
    directory = output or Path(order.config)
    options = simulating.RunOptions(pipeline or _AUTO, runtime or _AUTO, processes, time_limit, flat)
    get = installed(settings.load().plugins_blocked).get
    with _ended_by_signals(directory), shown() as report:
        made = simulating.simulate(
            order, directory, options, get=get, report=report, note=note, first_event=first_event
        )
    if as_json:
        print_json(made)
    else:
        _show(made, directory)


@contextmanager
def _ended_by_signals(directory: Path) -> Iterator[None]:
    """Whatever ends the command, the stage that runs is ended with it, and people are told how to go on."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, leave) for number in _ENDING}
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        note(f"Stopped; finished stages are kept in {directory}: the same command goes on from there.")
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
        note("These events were made here before.")
    else:
        note(f"Made in {told_time(made.seconds)}.")


_SECONDS: Final = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,7})m)?(?:(\d{1,9})s?)?", re.IGNORECASE)


class Duration(click.ParamType[float]):
    """A time, in seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = parse(str(value).strip())
        if not seconds:
            self.fail(f"{value!r} is no time: write for example 90s, 30m, 2h or 1h30m", param, ctx)
        return seconds


def parse(text: str) -> float:
    """The seconds that are meant; 0 for what is no time."""
    match = _DURATION.fullmatch(text)
    if match is None:
        return 0
    return float(
        sum(int(number or 0) * s for number, s in zip(match.groups(), _SECONDS.values(), strict=True))
    )
