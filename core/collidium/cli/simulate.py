"""``collidium simulate``: simulate events here, or order them from a server with ``--remote``."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.context import client
from collidium.cli.declaration import declared_options
from collidium.cli.options import (
    DIRECTORY,
    DURATION,
    EXISTING_FILE,
    json_option,
    key_option,
    preset_option,
)
from collidium.cli.output import cell, json_wanted, note, print_record, show_value
from collidium.cli.printing import print_request
from collidium.cli.progress import stage_progress, status_line
from collidium.order import ORDER_FIELDS, order_of, order_text
from collidium.presentation.quantities import duration_text
from collidium.presentation.requests import state_text
from collidium.records import NO_EVENTS

if TYPE_CHECKING:
    from collidium.client import Client, SimulationRequest
    from collidium.order import Order
    from collidium.pipelines.simulating import RunOptions, Simulated

#: Values of ``--runtime``.
RUNTIMES: Final = ("auto", "docker", "podman", "none")
#: Signals that end the command as SIGINT does.
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)

#: Options of only one of the two modes.
_REMOTE: Final = ("private", "webhook-url", "wait", "idempotency-key")
_LOCAL: Final = ("first-event", "lhe", "pipeline", "runtime", "processes", "time-limit", "output", "flat")


@click.command()
@preset_option
@declared_options(ORDER_FIELDS, "order")
@click.option(
    "--output",
    type=DIRECTORY,
    metavar="DIR",
    help="Directory of the dataset; default: ./<channel>_pu<pileup>.",
)
@click.option("--pipeline", metavar="NAME", help="odd, acts, or a plugin's; default: auto.")
@click.option("--runtime", type=click.Choice(RUNTIMES), help="Container runtime; default: auto.")
@click.option("--processes", type=click.IntRange(1, 256), help="Processes; default: one per CPU, at most 8.")
@click.option("--time-limit", type=DURATION, metavar="TIME", help="Stop after, for example, 90s, 30m or 2h.")
@click.option("--first-event", type=int, metavar="ID", help="Id of the first event; default: 0.")
@click.option(
    "--lhe",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Hard processes from a Les Houches file, plain or gzipped; --channel then names the dataset.",
)
@click.option("--flat", is_flag=True, help="Write the tables directly to DIR, without a card.")
@click.option("--remote", "at_server", is_flag=True, help="Order the events from the server, for credits.")
@click.option("--private", is_flag=True, help="With --remote: make the output's repository private.")
@click.option("--webhook-url", metavar="URL", help="With --remote: address to notify when the request ends.")
@click.option(
    "--wait", is_flag=True, help="With --remote: wait for the events; exits with 1 unless completed."
)
@key_option
@json_option
@click.pass_context
def simulate(
    ctx: click.Context,
    preset: str | None,
    order: dict[str, Any],
    output: Path | None,
    pipeline: str | None,
    runtime: str | None,
    processes: int | None,
    time_limit: float | None,
    first_event: int | None,
    lhe: Path | None,
    flat: bool,
    at_server: bool,
    private: bool,
    webhook_url: str | None,
    wait: bool,
    idempotency_key: str | None,
) -> None:
    """Simulate events on this machine, or order them from the server with --remote.

    After Ctrl-C, a time limit or a failure, the same command resumes after the last finished stage. The
    production pipeline is used if docker or podman has its image, else the built-in one. `collidium estimate`
    shows the cost of an order.

    \b
    collidium simulate --preset ttbar-quick
    collidium simulate --channel zmumu --events 1000 --pileup 40 --output zmumu
    collidium simulate --remote --preset ttbar-quick --wait
    """
    _reject_options_of_other_mode(ctx, at_server)
    _check_usage(preset, order)
    if at_server:
        delivery = {"private": private, "webhook_url": webhook_url, "idempotency_key": idempotency_key}
        ctx.exit(_order(wait, preset=preset, **order, **delivery))
    from collidium.pipelines.simulating import RunOptions

    local_order = order_of(preset, **order)
    options = RunOptions(pipeline or "auto", runtime or "auto", processes, time_limit, flat)
    _simulate(local_order, output or Path(local_order.config), options, first_event or 0, lhe)


def _reject_options_of_other_mode(ctx: click.Context, at_server: bool) -> None:
    others = _LOCAL if at_server else _REMOTE
    given = [name for name in others if ctx.params[name.replace("-", "_")] not in (None, False)]
    if given:
        reason = "simulates on this machine and cannot be used with" if at_server else "needs"
        raise click.UsageError(f"--{given[0]} {reason} --remote")


def _check_usage(preset: str | None, order: dict[str, Any]) -> None:
    required = [field.name for field in ORDER_FIELDS if field.is_required]
    if preset is not None:
        if given := [name for name in required if name in order]:
            raise click.UsageError(f"--preset sets channel, events and pileup: leave out --{given[0]}")
    elif missing := [f"--{name}" for name in required if name not in order]:
        raise click.UsageError(f"give {', '.join(missing)}, or --preset")


# -- on this machine ----------------------------------------------------------------------------------


def _simulate(order: Order, directory: Path, options: RunOptions, first_event: int, lhe: Path | None) -> None:
    """Simulate events into a directory and show the result."""
    from collidium import settings
    from collidium.pipelines import simulating
    from collidium.pipelines.choice import installed

    get = installed(settings.load().plugins_blocked).get
    with _ended_by_signals(directory), stage_progress() as progress:
        simulated = simulating.simulate(
            order, directory, options, get=get, report=progress, note=note, first_event=first_event, lhe=lhe
        )
    show_value(simulated, partial(_print_dataset, directory))


@contextmanager
def _ended_by_signals(directory: Path) -> Iterator[None]:
    """Stop the running stage on SIGTERM and SIGHUP too, and show how to resume."""

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


def _print_dataset(directory: Path, made: Simulated) -> None:
    last = made.first_event + made.events - 1
    print_record(
        {
            "dataset": directory,
            "config": made.config,
            "order": order_text(made),
            "events": f"{made.events} (ids {made.first_event} to {last}), seed {made.seed}",
            "pipeline": f"{made.pipeline}, version {made.pipeline_version}",
            "tables": ", ".join(made.tables),
            "size": f"{made.size_bytes / 1e6:.1f} MB",
        }
    )
    if made.made_before:
        note("The events existed already.")
    else:
        note(f"Simulated in {duration_text(made.seconds)}.")


# -- on a server --------------------------------------------------------------------------------------


def _order(wait: bool, **order: Any) -> int:
    """Order events, wait for them if ``wait``, and return the exit code."""
    with client() as server:
        if not json_wanted() and server.limits().runner_is_mock:
            note(f"{server.backend}: {NO_EVENTS}.")
        request = server.simulate(**order)
        if wait and not request.has_ended:
            paid = cell(request.credits_charged)
            note(f"Request {request.request_id} is {request.state}; {paid} credits were charged.")
            request = _wait(server, request)
    show_value(request, print_request)
    if not json_wanted():
        if request.cached:
            note("These events were simulated before; they cost nothing.")
        if not request.has_ended:
            note(f"`collidium status {request.request_id}` shows its progress.")
    return 1 if wait and request.state != "completed" else 0


def _wait(server: Client, request: SimulationRequest) -> SimulationRequest:
    with status_line() as update:

        def on_change(seen: SimulationRequest) -> None:
            reason = f": {seen.reason}" if seen.reason else ""
            update(f"{state_text(seen)}{reason}")

        try:
            return server.wait(request.request_id, on_change=on_change)
        except KeyboardInterrupt:
            note(f"The request continues: collidium status {request.request_id}")
            raise
