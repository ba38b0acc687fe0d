"""``collidium status``, ``output``, ``cancel`` and ``requests``: simulation requests and their states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import client
from collidium.cli.options import json_option, limit_option
from collidium.cli.output import (
    ColumnSpec,
    cell,
    note,
    print_items,
    print_json,
    print_record,
    printable,
    show_items,
)

if TYPE_CHECKING:
    from collidium.client import SimulationRequest

STATES: Final = ("queued", "running", "completed", "failed", "cancelled")

state_option = click.option("--state", type=click.Choice(STATES), help="Only requests in this state.")


@click.command()
@click.argument("request_id", metavar="REQUEST")
@json_option
def status(request_id: str, as_json: bool) -> None:
    """Show a simulation request with its timeline.

    \b
    collidium status 0c62a9ba44bd4ff18f0f73a8de5c3c2d
    """
    with client() as server:
        request = server.request(request_id)
    print_json(request) if as_json else show(request)


@click.command()
@click.argument("request_id", metavar="REQUEST")
@json_option
def output(request_id: str, as_json: bool) -> None:
    """List the files of a completed request that the server keeps.

    Download each from /v1/requests/REQUEST/output/PATH with your token.

    \b
    collidium output 0c62a9ba44bd4ff18f0f73a8de5c3c2d
    """
    with client() as server:
        files = server.output(request_id).items
    columns: dict[str, ColumnSpec] = {
        "path": "path",
        "events": "rows",
        "bytes": "size_bytes",
        "sha256": "sha256",
    }
    show_items(files, columns, as_json=as_json)


@click.command()
@click.argument("request_id", metavar="REQUEST")
@json_option
def cancel(request_id: str, as_json: bool) -> None:
    """Cancel a simulation request; the unused part is refunded.

    \b
    collidium cancel 0c62a9ba44bd4ff18f0f73a8de5c3c2d
    """
    with client() as server:
        request = server.cancel(request_id)
    print_json(request) if as_json else _show_cancellation(request)


@click.command()
@state_option
@limit_option("requests")
@json_option
def requests(state: str | None, limit: int, as_json: bool) -> None:
    """List your simulation requests, newest first.

    \b
    collidium requests
    collidium requests --state running
    """
    with client() as server:
        found = server.requests(state=state, limit=limit).items
    show_requests(found, as_json=as_json)


def show(request: SimulationRequest) -> None:
    """One request with its timeline."""
    refunded = f", {cell(request.credits_refunded)} refunded" if request.credits_refunded else ""
    mock = " (mock: no events)" if request.output_is_mock else ""
    order = f"{request.events} events of {request.channel} at pileup {request.pileup}, seed {request.seed}"
    order += f", varied: {request.vary}" if request.vary else ""
    print_record(
        {
            "request": request.request_id,
            "order": order,
            "state": state_text(request),
            "reason": request.reason,
            "credits": f"{cell(request.credits_charged)} charged{refunded}",
            "node-hours": request.node_hours,
            "output": request.output_hub_repo and request.output_hub_repo + mock,
        }
    )
    if request.timeline:
        columns = {"when": "at", "state": "state", "what happened": "reason"}
        print_items(request.timeline, columns, title="Timeline")


def show_requests(requests: Sequence[SimulationRequest], *, accounts: bool = False, as_json: bool) -> None:
    """Requests as a table, with the account of each if ``accounts``, or as JSON."""
    columns: dict[str, ColumnSpec] = {
        "request": "request_id",
        **({"account": "hub_username"} if accounts else {}),
        "state": state_text,
        "channel": "channel",
        "events": "events",
        "pileup": "pileup",
        "credits": "credits_charged",
        "ordered": "created_at",
    }
    show_items(requests, columns, as_json=as_json)


def state_text(request: SimulationRequest) -> str:
    """The state, and whether cancellation is pending."""
    stopping = request.cancel_requested and not request.has_ended
    return f"{request.state} (being cancelled)" if stopping else request.state


def _show_cancellation(request: SimulationRequest) -> None:
    if request.has_ended:
        click.echo(printable(f"Request {request.request_id} is {request.state}."))
    else:
        click.echo(printable(f"Request {request.request_id} is being cancelled."))
        note(f"`collidium status {request.request_id}` shows when it is done.")
