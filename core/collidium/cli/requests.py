"""``collidium status``, ``cancel`` and ``requests``: simulation requests and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.calling import client
from collidium.cli.listing import limit_option
from collidium.cli.output import cell, json_option, note, print_json, print_record, print_table

if TYPE_CHECKING:
    from collidium.client import SimulationRequest

STATES: Final = ("queued", "running", "completed", "failed", "cancelled")

state_option = click.option("--state", type=click.Choice(STATES), help="Only requests in this state.")


@click.command()
@click.argument("request_id", metavar="REQUEST")
@json_option
def status(request_id: str, as_json: bool) -> None:
    """Show a simulation request and what happened to it so far.

    \b
    collidium status 0c62a9ba44bd4ff18f0f73a8de5c3c2d
    """
    with client() as server:
        request = server.request(request_id)
    if as_json:
        print_json(request)
    else:
        show(request)


@click.command()
@click.argument("request_id", metavar="REQUEST")
@json_option
def cancel(request_id: str, as_json: bool) -> None:
    """Cancel a simulation request; what its job did not use is refunded.

    \b
    collidium cancel 0c62a9ba44bd4ff18f0f73a8de5c3c2d
    """
    with client() as server:
        request = server.cancel(request_id)
    if as_json:
        print_json(request)
    else:
        tell_of_cancellation(request)


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
    if as_json:
        print_json(found)
    else:
        show_list(found)


def show(request: SimulationRequest) -> None:
    """One request with its timeline."""
    refunded = f", {cell(request.credits_refunded)} refunded" if request.credits_refunded else ""
    mock = " (a mock: there is nothing)" if request.output_is_mock else ""
    order = f"{request.events} events of {request.channel} at pileup {request.pileup}, seed {request.seed}"
    print_record(
        {
            "request": request.request_id,
            "order": order,
            "state": told_state(request),
            "reason": request.reason,
            "credits": f"{cell(request.credits_charged)} charged{refunded}",
            "node-hours": request.node_hours,
            "output": request.output_hub_repo and request.output_hub_repo + mock,
        }
    )
    if request.timeline:
        print_table(
            ("when", "state", "what happened"),
            ((moment.at, moment.state, moment.reason) for moment in request.timeline),
            title="Timeline",
        )


def show_list(requests: Iterable[SimulationRequest], *, of_everybody: bool = False) -> None:
    """Requests as a table; of everybody with the account of each."""
    whose = ("account",) if of_everybody else ()
    print_table(
        ("request", *whose, "state", "channel", "events", "pileup", "credits", "ordered"),
        (
            (
                request.request_id,
                *((request.hub_username,) if of_everybody else ()),
                told_state(request),
                request.channel,
                request.events,
                request.pileup,
                request.credits_charged,
                request.created_at,
            )
            for request in requests
        ),
    )


def told_state(request: SimulationRequest) -> str:
    """The state, and that it is about to change where that was asked for."""
    stopping = request.cancel_requested and not request.has_ended
    return f"{request.state} (being cancelled)" if stopping else request.state


def tell_of_cancellation(request: SimulationRequest) -> None:
    """What became of a cancellation so far."""
    if request.has_ended:
        click.echo(f"Request {request.request_id} is {request.state}.")
    else:
        click.echo(f"Request {request.request_id} is being cancelled.")
        note(f"`collidium status {request.request_id}` tells when it is.")
