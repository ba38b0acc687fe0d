"""``collidium estimate``, ``limits`` and ``presets``, and commands for simulation requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from collidium.cli.context import client
from collidium.cli.declaration import declared_options
from collidium.cli.options import DIRECTORY, json_option, limit_option, preset_option, state_option
from collidium.cli.output import (
    ColumnSpec,
    note,
    printable,
    show_items,
    show_record,
    show_value,
)
from collidium.cli.printing import print_request
from collidium.cli.progress import progress_bar
from collidium.order import ORDER_FIELDS, Order, order_text
from collidium.presentation import requests as presented
from collidium.records import NO_EVENTS

if TYPE_CHECKING:
    from pathlib import Path

    from collidium.client import SimulationRequest

#: What an order has, unless a preset sets it.
REQUIRED: Final = {field.name for field in ORDER_FIELDS if field.is_required}


@click.command()
@preset_option
@declared_options((field for field in ORDER_FIELDS if field.is_priced), "order")
@json_option
def estimate(preset: str | None, order: dict[str, Any]) -> None:
    """Show the cost of a simulation request, without sending it.

    \b
    collidium estimate --channel ttbar --events 1000 --pileup 200
    collidium estimate --preset ttbar-dev
    """
    if preset is not None and order.keys() & REQUIRED:
        raise click.UsageError("--preset sets channel, events and pileup: give it alone")
    with client() as server:
        if preset is not None:
            known = {found.name: found for found in server.presets()}
            if preset not in known:
                raise click.UsageError(f"there is no preset {preset!r}; there are: {', '.join(known)}")
            named = known[preset]
            order |= {"channel": named.channel, "events": named.events, "pileup": named.pileup}
        if REQUIRED - order.keys():
            raise click.UsageError("give --channel, --events and --pileup, or --preset")
        found = server.estimate(**order)
    rows = {
        "order": order_text(Order(**order), is_priced=True),
        "credits": found.credits,
        "node-hours": found.node_hours,
        "on one node": f"{found.node_seconds:.0f} s",
        "runner": NO_EVENTS if found.runner_is_mock else None,
    }
    show_record(found, rows)


@click.command()
@json_option
def limits() -> None:
    """Show the available channels, and the limits of events, pileup and seed.

    \b
    collidium limits
    """
    with client() as server:
        found = server.limits()
    rows = {
        "channels": found.channels,
        "events": f"{found.events.minimum} to {found.events.maximum}",
        "pileup": f"{found.pileup.minimum} to {found.pileup.maximum}",
        "seed": f"{found.seed.minimum} to {found.seed.maximum}; default: {found.default_seed}",
        "vary": ", ".join(f"{v.name} {v.minimum:g} to {v.maximum:g}" for v in found.variations),
        "runner": NO_EVENTS if found.runner_is_mock else None,
    }
    show_record(found, rows)


@click.command()
@json_option
def presets() -> None:
    """List the presets and their cost.

    \b
    collidium presets
    """
    with client() as server:
        found = server.presets().items
    columns = {
        "preset": "name",
        "channel": "channel",
        "events": "events",
        "pileup": "pileup",
        "credits": "credits",
    }
    show_items(found, columns)


@click.command()
@click.argument("request_id", metavar="REQUEST")
@json_option
def status(request_id: str) -> None:
    """Show a simulation request with its timeline.

    \b
    collidium status 0c62a9ba44bd4ff18f0f73a8de5c3c2d
    """
    with client() as server:
        request = server.request(request_id)
    show_value(request, print_request)


@click.command()
@click.argument("request_id", metavar="REQUEST")
@click.option(
    "--to",
    "directory",
    type=DIRECTORY,
    help="Download the files to this directory; what is there is not sent again.",
)
@json_option
def output(request_id: str, directory: Path | None) -> None:
    """List or download the files of a completed request that the server stores.

    An interrupted download is resumed by the same command.

    \b
    collidium output 0c62a9ba44bd4ff18f0f73a8de5c3c2d
    collidium output 0c62a9ba44bd4ff18f0f73a8de5c3c2d --to events
    """
    with client() as server:
        files = server.output(request_id).items
        if directory is not None:
            for file in files:
                with progress_bar(file.path, sizes=True) as progress:
                    server.output_file(request_id, file, directory, progress)
    columns: dict[str, ColumnSpec] = {
        "path": "path",
        "events": "rows",
        "bytes": "size_bytes",
        "sha256": "sha256",
    }
    show_items(files, columns)


@click.command()
@click.argument("request_id", metavar="REQUEST")
@json_option
def cancel(request_id: str) -> None:
    """Cancel a simulation request; the unused part is refunded.

    \b
    collidium cancel 0c62a9ba44bd4ff18f0f73a8de5c3c2d
    """
    with client() as server:
        request = server.cancel(request_id)
    show_value(request, _print_cancellation)


@click.command()
@state_option("requests", presented.STATES)
@limit_option("requests")
@json_option
def requests(state: str | None, limit: int) -> None:
    """List your simulation requests, newest first.

    \b
    collidium requests
    collidium requests --state running
    """
    with client() as server:
        found = server.requests(state=state, limit=limit).items
    show_items(found, presented.in_commands())


def _print_cancellation(request: SimulationRequest) -> None:
    if request.has_ended:
        click.echo(printable(f"Request {request.request_id} is {request.state}."))
    else:
        click.echo(printable(f"Request {request.request_id} is being cancelled."))
        note(f"`collidium status {request.request_id}` shows when it is done.")
