"""``collidium webhook``: where an account is notified that its requests have ended."""

from __future__ import annotations

import click

from collidium.cli.context import client
from collidium.cli.options import json_option, limit_option
from collidium.cli.output import ColumnSpec, note, print_json, print_record, show_items, show_record


@click.group()
def webhook() -> None:
    """Get notified at an HTTPS address when a simulation request ends."""


@webhook.command("set")
@click.argument("url", required=False)
@click.option("--rotate-secret", is_flag=True, help="Replace the signing secret at once.")
@json_option
def set_(url: str | None, rotate_secret: bool, as_json: bool) -> None:
    """Send notifications to URL; without URL, only create or rotate the signing secret.

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
    """Show your webhook.

    \b
    collidium webhook show
    """
    with client() as server:
        hook = server.webhook()
    value = {"url": hook.url, "created_at": hook.created_at}
    show_record(value, {"url": hook.url, "since": hook.created_at}, as_json=as_json)


@webhook.command()
@json_option
def remove(as_json: bool) -> None:
    """Remove the webhook with its secret; pending deliveries are dropped.

    \b
    collidium webhook remove
    """
    with client() as server:
        answer = server.remove_webhook()
    if as_json:
        print_json(answer)
    else:
        note("The webhook is removed." if answer.removed else "There was no webhook.")


@webhook.command()
@limit_option("deliveries")
@json_option
def deliveries(limit: int, as_json: bool) -> None:
    """List deliveries, with the reason if one failed, newest first.

    \b
    collidium webhook deliveries --limit 100
    """
    with client() as server:
        log = server.webhook_deliveries(limit=limit)
    columns: dict[str, ColumnSpec] = {
        "when": "created_at",
        "request": "request_id",
        "state": "state",
        "attempts": "attempts",
        "response": lambda delivery: delivery.last_error or delivery.last_status,
        "next attempt": "next_attempt_at",
        "url": "url",
    }
    show_items(log.items, columns, as_json=as_json)
