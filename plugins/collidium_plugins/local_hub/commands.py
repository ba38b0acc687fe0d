"""``collidium user``: accounts on the local hub."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from collidium.cli.options import json_option
from collidium.cli.output import print_json, print_table

if TYPE_CHECKING:
    from collidium_plugins.local_hub.store import Store


@click.group()
def user() -> None:
    """Make accounts on the local hub of this machine, and list them."""


@user.command()
@click.argument("name")
@click.option(
    "--new-token", is_flag=True, help="The account exists: make a token that replaces its earlier ones."
)
@json_option
def add(name: str, new_token: bool, as_json: bool) -> None:
    """Make account NAME and print its token, alone on the last line. It is not shown again.

    \b
    collidium user add alice
    """
    from collidium.errors import NotFound
    from collidium_plugins.local_hub import accounts

    with _store() as store, store.database.writing() as db:
        existing = accounts.find(db, name) if new_token else None
        if new_token and existing is None:
            raise NotFound(f"there is no account {name!r}; without --new-token it is made")
        account = existing or accounts.add(db, name)
        token = accounts.make_token(db, account)
    if as_json:
        print_json({"name": account.name, "created_at": account.created_at, "token": token})
    else:
        click.echo(f"Account {account.name} on the local hub. Its token:")
        click.echo(token)


@user.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the accounts of the local hub.

    \b
    collidium user list
    """
    from collidium_plugins.local_hub import accounts

    with _store() as store, store.database.reading() as db:
        everybody = accounts.every(db)
    records = [{"name": account.name, "created_at": account.created_at} for account in everybody]
    if as_json:
        print_json(records)
    else:
        print_table(("account", "since"), [(record["name"], record["created_at"]) for record in records])


@contextmanager
def _store() -> Iterator[Store]:
    from collidium import settings
    from collidium_plugins.local_hub.store import Store

    store = Store(settings.load().data_dir / "hub")
    try:
        yield store
    finally:
        store.close()
