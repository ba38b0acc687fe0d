"""``collidium estimate``, ``limits`` and ``presets``: what can be ordered, and what it costs."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.output import json_option, print_json, print_record, print_table


@click.command()
@click.option("--preset", help="An order by its name; `collidium presets` lists them.")
@click.option("--channel", help="Physics process.")
@click.option("--events", type=int, help="Number of hard-scatter events.")
@click.option("--pileup", type=int, help="Soft interactions overlaid per event.")
@json_option
def estimate(
    preset: str | None, channel: str | None, events: int | None, pileup: int | None, as_json: bool
) -> None:
    """Show what an order of events would cost. Nothing is ordered.

    \b
    collidium estimate --channel ttbar --events 1000 --pileup 200
    collidium estimate --preset ttbar-standard
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
        found = server.estimate(channel, events, pileup)
    if as_json:
        print_json(found)
    else:
        print_record(
            {
                "order": f"{found.events} events of {found.channel} at pileup {found.pileup}",
                "credits": found.credits,
                "node-hours": found.node_hours,
                "on one node": f"{found.node_seconds:.0f} s",
            }
        )


@click.command()
@json_option
def limits(as_json: bool) -> None:
    """Show the channels that can be ordered, and how many events, how much pileup and which seeds.

    \b
    collidium limits
    """
    with client() as server:
        found = server.limits()
    if as_json:
        print_json(found)
    else:
        print_record(
            {
                "channels": found.channels,
                "events": f"{found.events.minimum} to {found.events.maximum}",
                "pileup": f"{found.pileup.minimum} to {found.pileup.maximum}",
                "seed": f"{found.seed.minimum} to {found.seed.maximum}; {found.default_seed} unless given",
            }
        )


@click.command()
@json_option
def presets(as_json: bool) -> None:
    """List the orders that have a name, and what each costs.

    \b
    collidium presets
    """
    with client() as server:
        found = server.presets().items
    if as_json:
        print_json(found)
    else:
        print_table(
            ("preset", "channel", "events", "pileup", "credits"),
            ((p.name, p.channel, p.events, p.pileup, p.credits) for p in found),
        )
