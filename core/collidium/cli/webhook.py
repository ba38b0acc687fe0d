"""``collidium webhook``: where an account is told that its requests have ended."""

from __future__ import annotations

import click

from collidium.cli.calling import client
from collidium.cli.listing import limit_option
from collidium.cli.output import json_option, note, print_json, print_record, print_table


@click.group()
def webhook() -> None:
    """Be told at an HTTPS address when a simulation request ends."""


@webhook.command("set")
@click.argument("url", required=False)
@click.option("--rotate-secret", is_flag=True, help="Make a new signing secret; the old one ends at once.")
@json_option
def set_(url: str | None, rotate_secret: bool, as_json: bool) -> None:
    """Send what happens to URL; without it only the signing secret is made, or made anew.

    \b
    collidium webhook set https://receiver.example/collidium
    collidium webhook set --rotate-secret
    """
    with client() as server:
        hook = server.set_webhook(url, rotate_secret=rotate_secret)
    if as_json:
        print_json(hook)
        return
    print_record({"url": hook.url} | ({} if hook.secret is None else {"secret": hook.secret}))
    if hook.secret is not None:
        note("This is the only time that the secret is shown: give it to your receiver now.")


@webhook.command()
@json_option
def show(as_json: bool) -> None:
    """Show where you are told.

    \b
    collidium webhook show
    """
    with client() as server:
        hook = server.webhook()
    if as_json:
        print_json({"url": hook.url, "created_at": hook.created_at})
    else:
        print_record({"url": hook.url, "since": hook.created_at})


@webhook.command()
@json_option
def remove(as_json: bool) -> None:
    """Be told nothing more; the secret is forgotten, what is still to be delivered is given up.

    \b
    collidium webhook remove
    """
    with client() as server:
        answer = server.remove_webhook()
    if as_json:
        print_json(answer)
    else:
        note("You are told nothing more." if answer.removed else "There was no webhook.")


@webhook.command()
@limit_option("deliveries")
@json_option
def deliveries(limit: int, as_json: bool) -> None:
    """List what was told to you, or was not and why, newest first.

    \b
    collidium webhook deliveries --limit 100
    """
    with client() as server:
        log = server.webhook_deliveries(limit=limit)
    if as_json:
        print_json(log.items)
        return
    print_table(
        ("when", "request", "state", "attempts", "answer", "next attempt", "url"),
        (
            (
                d.created_at,
                d.request_id,
                d.state,
                d.attempts,
                d.last_error or d.last_status,
                d.next_attempt_at,
                d.url,
            )
            for d in log
        ),
    )
