"""``collidium estimate``, ``limits`` and ``presets``: what can be ordered, and what it costs."""

from __future__ import annotations

import click

from collidium.cli.context import client
from collidium.cli.options import json_option, preset_option, vary_option
from collidium.cli.output import show_items, show_record


@click.command()
@preset_option
@click.option("--channel", help="Physics process.")
@click.option("--events", type=int, help="Number of hard-scatter events.")
@click.option("--pileup", type=int, help="Soft interactions overlaid per event.")
@vary_option
@json_option
def estimate(
    preset: str | None, channel: str | None, events: int | None, pileup: int | None, vary: str, as_json: bool
) -> None:
    """Show what an order of events would cost, without ordering it.

    \b
    collidium estimate --channel ttbar --events 1000 --pileup 200
    collidium estimate --preset ttbar-dev
    """
    if preset is not None and (channel, events, pileup) != (None, None, None):
        raise click.UsageError("a preset stands for channel, events and pileup: give one or the other")
    with client() as server:
        if preset is not None:
            known = {found.name: found for found in server.presets()}
            if preset not in known:
                raise click.UsageError(f"there is no preset {preset!r}; there are: {', '.join(known)}")
            channel, events, pileup = known[preset].channel, known[preset].events, known[preset].pileup
        if channel is None or events is None or pileup is None:
            raise click.UsageError("give --channel, --events and --pileup, or --preset")
        found = server.estimate(channel, events, pileup, vary=vary)
    rows = {
        "order": f"{found.events} events of {found.channel} at pileup {found.pileup}",
        "credits": found.credits,
        "node-hours": found.node_hours,
        "on one node": f"{found.node_seconds:.0f} s",
    }
    show_record(found, rows, as_json=as_json)


@click.command()
@json_option
def limits(as_json: bool) -> None:
    """Show the channels that can be ordered, and the limits of events, pileup and seed.

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
    }
    show_record(found, rows, as_json=as_json)


@click.command()
@json_option
def presets(as_json: bool) -> None:
    """List the named orders and what each costs.

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
    show_items(found, columns, as_json=as_json)
