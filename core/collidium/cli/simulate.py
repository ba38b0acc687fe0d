"""``collidium simulate``: order simulated events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from collidium.cli.calling import client
from collidium.cli.output import cell, json_option, note, print_json
from collidium.cli.progress import status_line
from collidium.cli.requests import show, told_state

if TYPE_CHECKING:
    from collidium.client import Client, SimulationRequest


@click.command()
@click.option("--preset", help="An order by its name; `collidium presets` lists them.")
@click.option("--channel", help="Physics process, for example ttbar.")
@click.option("--events", type=int, help="Number of hard-scatter events.")
@click.option("--pileup", type=int, help="Soft interactions overlaid per event.")
@click.option("--seed", type=int, help="Seed of the random numbers; default: 42.")
@click.option("--remote", is_flag=True, help="Order the events from the server, and pay with credits.")
@click.option("--private", is_flag=True, help="Make the output's repository private.")
@click.option("--webhook-url", metavar="URL", help="Where the server tells of the end.")
@click.option("--wait", is_flag=True, help="Wait until the events are there; ends with 1 if they never are.")
@json_option
@click.pass_context
def simulate(
    ctx: click.Context,
    preset: str | None,
    channel: str | None,
    events: int | None,
    pileup: int | None,
    seed: int | None,
    remote: bool,
    private: bool,
    webhook_url: str | None,
    wait: bool,
    as_json: bool,
) -> None:
    """Order simulated events. `collidium estimate` tells what they cost.

    The same order again is answered with the events that were made lately, and costs nothing.

    \b
    collidium simulate --remote --preset ttbar-quick --wait
    collidium simulate --remote --channel ttbar --events 1000 --pileup 200
    """
    if not remote:
        raise click.UsageError(
            "simulation on this machine is not there yet: add --remote to order the events from the server"
        )
    _check_usage(preset, channel, events, pileup)
    with client() as server:
        request = server.simulate(
            channel,
            events,
            pileup,
            seed=seed,
            preset=preset,
            private=private,
            webhook_url=webhook_url,
        )
        if wait and not request.has_ended:
            paid = cell(request.credits_charged)
            note(f"Request {request.request_id} is {request.state}; {paid} credits were charged.")
            request = _waited(server, request)
    if as_json:
        print_json(request)
    else:
        show(request)
        if request.cached:
            note("These events were made before; you pay nothing for them.")
        if not request.has_ended:
            note(f"`collidium status {request.request_id}` tells how it goes on.")
    ctx.exit(1 if wait and request.state != "completed" else 0)


def _check_usage(preset: str | None, channel: str | None, events: int | None, pileup: int | None) -> None:
    knobs = {"--channel": channel, "--events": events, "--pileup": pileup}
    if preset is not None:
        given = [name for name, value in knobs.items() if value is not None]
        if given:
            raise click.UsageError(f"a preset stands for channel, events and pileup: not with {given[0]}")
    elif missing := [name for name, value in knobs.items() if value is None]:
        raise click.UsageError(f"give {', '.join(missing)}, or --preset")


def _waited(server: Client, request: SimulationRequest) -> SimulationRequest:
    with status_line() as tell:

        def on_change(seen: SimulationRequest) -> None:
            reason = f": {seen.reason}" if seen.reason else ""
            tell(f"{told_state(seen)}{reason}")

        try:
            return server.wait(request.request_id, on_change=on_change)
        except KeyboardInterrupt:
            note(f"The request goes on: collidium status {request.request_id}")
            raise
