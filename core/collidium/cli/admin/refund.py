"""``collidium admin refund``: give back what was charged for requests that failed in some time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from collidium.cli.admin.deeds import ask, yes_option
from collidium.cli.calling import client, key_option
from collidium.cli.output import cell, json_option, note, print_json, print_table

if TYPE_CHECKING:
    from collidium.client import Refunds


class Time(click.ParamType[datetime]):
    """A moment; without a zone it is of UTC, as every time that the command shows."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            moment = datetime.fromisoformat(str(value).strip())
        except ValueError:
            self.fail(f"{value!r} is no time: write for example 2026-11-21T09:00Z", param, ctx)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


@click.command()
@click.option(
    "--from", "begin", type=Time(), required=True, help="Begin of the time, for example 2026-11-21T09:00Z."
)
@click.option("--to", "end", type=Time(), help="End of the time; default: now.")
@click.option("--apply", is_flag=True, help="Give it back; without this, it is only shown.")
@click.option("--note", "what_for", metavar="TEXT", help="What for; the accounts see it.")
@yes_option
@key_option
@json_option
def refund(
    begin: datetime,
    end: datetime | None,
    apply: bool,
    what_for: str | None,
    yes: bool,
    idempotency_key: str | None,
    as_json: bool,
) -> None:
    """Show what is still charged for requests that failed between two times, and give it back with --apply.

    Failures of the platform are refunded when they happen. What is left are those that went by their owners'
    doing: a token that could not publish, a repository in the way. What is given back is exactly what was
    shown; if that changes meanwhile, nothing is, and the command ends with 3.

    \b
    collidium admin refund --from 2026-11-21T09:00Z --to 2026-11-21T11:30Z
    collidium admin refund --from 2026-11-21T09:00Z --to 2026-11-21T11:30Z --apply --note "the hub was down"
    """
    until = end or datetime.now(UTC)
    with client() as server:
        found = server.admin_refunds(begin, until)
        if apply:
            if not as_json:
                _show(found)
            told = f"{len(found.requests)} requests with {cell(found.total)} credits"
            ask(f"Give back {told}?", yes=yes)
            found = server.admin_refunds(
                begin, until, apply=True, digest=found.digest, note=what_for, idempotency_key=idempotency_key
            )
    if as_json:
        print_json(found)
    elif apply:
        click.echo(f"Gave back {cell(found.total)} credits for {len(found.requests)} requests.")
    else:
        _show(found)
        if found.requests:
            note(f"{cell(found.total)} credits in all. Nothing was given back: add --apply for that.")


def _show(found: Refunds) -> None:
    print_table(
        ("request", "account", "channel", "failed", "charged", "refunded", "left", "reason"),
        (
            (
                refund.request_id,
                refund.hub_username,
                refund.channel,
                refund.failed_at,
                refund.credits_charged,
                refund.credits_refunded,
                refund.refund,
                refund.reason,
            )
            for refund in found.requests
        ),
    )
