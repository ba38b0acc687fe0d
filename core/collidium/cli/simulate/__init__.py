"""``collidium simulate``: events from this machine, or ordered from a server: a module for each."""

from __future__ import annotations

from pathlib import Path

import click

from collidium.cli.options import DIRECTORY, DURATION, json_option, key_option
from collidium.cli.simulate import local, remote

#: Options of one of the two modes alone: the parameter and the option.
_REMOTE = {
    "private": "--private",
    "webhook_url": "--webhook-url",
    "wait": "--wait",
    "idempotency_key": "--idempotency-key",
}
_LOCAL = {
    "first_event": "--first-event",
    "pipeline": "--pipeline",
    "runtime": "--runtime",
    "processes": "--processes",
    "time_limit": "--time-limit",
    "output": "--output",
    "flat": "--flat",
}


@click.command()
@click.option("--preset", help="A named order; `collidium presets` lists them.")
@click.option("--channel", help="Physics process, for example ttbar.")
@click.option("--events", type=int, help="Number of hard-scatter events.")
@click.option("--pileup", type=int, help="Soft interactions overlaid per event.")
@click.option("--seed", type=int, help="Seed of the random parameters; default: 42.")
@click.option(
    "--output",
    type=DIRECTORY,
    metavar="DIR",
    help="Directory of the dataset; default: ./<channel>_pu<pileup>.",
)
@click.option(
    "--pipeline",
    metavar="NAME",
    help="odd, acts, or a plugin's; default: auto.",
)
@click.option("--runtime", type=click.Choice(local.RUNTIMES), help="Container runtime; default: auto.")
@click.option(
    "--processes",
    type=click.IntRange(1, 256),
    help="Processes; default: one per CPU, at most 8.",
)
@click.option("--time-limit", type=DURATION, metavar="TIME", help="Stop after, for example, 90s, 30m or 2h.")
@click.option("--first-event", type=int, metavar="ID", help="Id of the first event; default: 0.")
@click.option("--flat", is_flag=True, help="Put the tables directly into DIR, without a card.")
@click.option("--remote", "at_server", is_flag=True, help="Order from the server, and pay with credits.")
@click.option("--private", is_flag=True, help="With --remote: make the output's repository private.")
@click.option("--webhook-url", metavar="URL", help="With --remote: address to notify of the end.")
@click.option(
    "--wait", is_flag=True, help="With --remote: wait for the events; ends with 1 unless completed."
)
@key_option
@json_option
@click.pass_context
def simulate(
    ctx: click.Context,
    preset: str | None,
    channel: str | None,
    events: int | None,
    pileup: int | None,
    seed: int | None,
    output: Path | None,
    pipeline: str | None,
    runtime: str | None,
    processes: int | None,
    time_limit: float | None,
    first_event: int | None,
    flat: bool,
    at_server: bool,
    private: bool,
    webhook_url: str | None,
    wait: bool,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Simulate events on this machine, or order them from the server with --remote.

    After Ctrl-C, a time limit or a failure, the same command resumes after the last finished stage. The
    production pipeline is used where docker or podman has its image, else the built-in one. `collidium
    estimate` shows the cost of an order.

    \b
    collidium simulate --preset ttbar-quick
    collidium simulate --channel zmumu --events 1000 --pileup 40 --output zmumu
    collidium simulate --remote --preset ttbar-quick --wait
    """
    _reject_options_of_other_mode(ctx, at_server)
    _check_usage(preset, channel, events, pileup)
    order = (preset, channel, events, pileup, seed)
    if at_server:
        ctx.exit(remote.order(*order, private, webhook_url, wait, idempotency_key, as_json))
    local.simulate(
        *order,
        output=output,
        pipeline=pipeline,
        runtime=runtime,
        processes=processes,
        time_limit=time_limit,
        first_event=first_event or 0,
        flat=flat,
        as_json=as_json,
    )


def _reject_options_of_other_mode(ctx: click.Context, at_server: bool) -> None:
    others = _LOCAL if at_server else _REMOTE
    given = [typed for name, typed in others.items() if ctx.params[name] not in (None, False)]
    if given:
        reason = "is for simulations on this machine: not with" if at_server else "needs"
        raise click.UsageError(f"{given[0]} {reason} --remote")


def _check_usage(preset: str | None, channel: str | None, events: int | None, pileup: int | None) -> None:
    parameters = {"--channel": channel, "--events": events, "--pileup": pileup}
    if preset is not None:
        given = [name for name, value in parameters.items() if value is not None]
        if given:
            raise click.UsageError(f"a preset stands for channel, events and pileup: not with {given[0]}")
    elif missing := [name for name, value in parameters.items() if value is None]:
        raise click.UsageError(f"give {', '.join(missing)}, or --preset")
