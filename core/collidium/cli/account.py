"""``collidium me``, ``login``, ``account`` and ``webhook``."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from collidium.cli.context import client
from collidium.cli.options import json_option, limit_option
from collidium.cli.output import (
    ColumnSpec,
    json_wanted,
    note,
    short_reference,
    show_items,
    show_record,
    show_value,
)

if TYPE_CHECKING:
    from collidium.client.calls import NotificationChanges

LEDGER: Final[Mapping[str, ColumnSpec]] = {
    "when": "created_at",
    "credits": "delta",
    "reason": "reason",
    "for": lambda entry: short_reference(entry.reference or "-"),
    "note": "note",
    "balance": "balance_after",
}


@click.command()
@click.option("--transactions", is_flag=True, help="Show the ledger instead, newest first.")
@limit_option("entries")
@json_option
def me(transactions: bool, limit: int) -> None:
    """Show your account, or its ledger.

    \b
    collidium me
    collidium me --transactions --limit 100
    """
    with client() as server:
        if transactions:
            entries = server.transactions(limit=limit)
            show_items(entries.items, LEDGER)
            return
        account = server.me()
    rows = {
        "account": account.hub_username,
        "credits": account.credits,
        "banned": account.banned,
        "since": account.created_at,
        "server": server.backend,
    }
    show_record(account, rows)


@click.command()
@click.option("--token-stdin", is_flag=True, help="Read the token from standard input instead of asking.")
@click.option("--forget", is_flag=True, help="Delete the saved token.")
def login(token_stdin: bool, forget: bool) -> None:
    """Save your hub token for the server of PLATFORM_BACKEND, after checking it there.

    The token is saved in a file that only you can read. HF_TOKEN, if set, takes precedence.

    \b
    collidium login
    collidium login --token-stdin < token.txt
    collidium login --forget
    """
    from collidium.client import forget_token, save_token

    if forget:
        with client() as server:
            known = forget_token(server.backend)
        note(f"The token for {server.backend} is deleted." if known else "No token was saved.")
        return
    token = _read_token(token_stdin)
    with client(token) as server:
        account = server.me()
    path = save_token(server.backend, token)
    note(f"Logged in to {server.backend} as {account.hub_username}; the token is in {path}.")
    if os.environ.get("HF_TOKEN"):
        note("HF_TOKEN is set and takes precedence.")


def _read_token(token_stdin: bool) -> str:
    if token_stdin:
        token = sys.stdin.readline().strip()
    elif not sys.stdin.isatty():
        raise click.UsageError("there is no terminal to ask for the token; use --token-stdin < token.txt")
    else:
        token = str(click.prompt("Hub token", hide_input=True, err=True)).strip()
    if not token:
        raise click.UsageError("the token is empty")
    return token


@click.group()
def account() -> None:
    """Choose your notifications."""


@account.command()
@click.option(
    "--email",
    metavar="ADDRESS",
    help="Address for e-mail, used once you have confirmed it by the link sent there.",
)
@click.option("--no-email", is_flag=True, help="Remove the address.")
@click.option("--on", "on", metavar="KIND", multiple=True, help="Send this kind of event; repeatable.")
@click.option("--off", "off", metavar="KIND", multiple=True, help="Do not send it; repeatable.")
@json_option
def notify(email: str | None, no_email: bool, on: tuple[str, ...], off: tuple[str, ...]) -> None:
    """Show or change your notifications.

    Kinds are scored, disqualified, deadline, closed, results and job; all are on by default. They are sent to
    your e-mail address and your webhook (`collidium webhook`), if you have set them.

    \b
    collidium account notify
    collidium account notify --email anna@example.org --off scored --off job
    collidium account notify --no-email
    """
    if email is not None and no_email:
        raise click.UsageError("give --email or --no-email, not both")
    if both := set(on) & set(off):
        raise click.UsageError(f"{', '.join(sorted(both))}: both on and off")
    changes: NotificationChanges = {}
    if email is not None or no_email:
        changes["email"] = email
    if on or off:
        changes["kinds"] = dict.fromkeys(on, True) | dict.fromkeys(off, False)
    with client() as server:
        found = server.set_notifications(**changes) if changes else server.notifications()
    rows = {
        "e-mail": found.email,
        "confirmed": found.confirmed_at,
        **({"problem": found.problem} if found.problem else {}),
        "sent": [kind for kind, is_on in found.kinds.items() if is_on],
        "not sent": [kind for kind, is_on in found.kinds.items() if not is_on],
    }
    show_record(found, rows)
    if email is not None and found.confirmed_at is None and not json_wanted():
        note(f"Follow the link that was sent to {email} to confirm the address.")


@click.group()
def webhook() -> None:
    """Get notified at an HTTPS address of submissions, challenges and simulation requests."""


@webhook.command("set")
@click.argument("url", required=False)
@click.option("--rotate-secret", is_flag=True, help="Replace the signing secret.")
@json_option
def set_(url: str | None, rotate_secret: bool) -> None:
    """Send notifications to URL; without URL, only create or rotate the signing secret.

    \b
    collidium webhook set https://receiver.example/collidium
    collidium webhook set --rotate-secret
    """
    with client() as server:
        hook = server.set_webhook(url, rotate_secret=rotate_secret)
    show_record(hook, {"url": hook.url} | ({} if hook.secret is None else {"secret": hook.secret}))
    if hook.secret is not None and not json_wanted():
        note("Give the secret to your receiver now: it is not shown again.")


@webhook.command()
@json_option
def show() -> None:
    """Show your webhook.

    \b
    collidium webhook show
    """
    with client() as server:
        hook = server.webhook()
    # The secret of the record is always null here.
    value = {"url": hook.url, "created_at": hook.created_at}
    show_record(value, {"url": hook.url, "since": hook.created_at})


@webhook.command()
@json_option
def remove() -> None:
    """Remove the webhook with its secret; pending deliveries are dropped.

    \b
    collidium webhook remove
    """
    with client() as server:
        answer = server.remove_webhook()
    text = "The webhook is removed." if answer.removed else "There was no webhook."
    show_value(answer, lambda _: note(text))


@webhook.command()
@limit_option("deliveries")
@json_option
def deliveries(limit: int) -> None:
    """List deliveries, with the reason if one failed, newest first.

    \b
    collidium webhook deliveries --limit 100
    """
    with client() as server:
        log = server.webhook_deliveries(limit=limit)
    columns: dict[str, ColumnSpec] = {
        "when": "created_at",
        "type": "type",
        "about": "reference",
        "state": "state",
        "attempts": "attempts",
        "response": lambda delivery: delivery.last_error or delivery.last_status,
        "next attempt": "next_attempt_at",
        "url": "url",
    }
    show_items(log.items, columns)
