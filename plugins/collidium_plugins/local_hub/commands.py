"""``collidium user``: accounts on the local hub."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium.cli.context import on_platform
from collidium.cli.options import EXISTING_FILE, FILE, json_option
from collidium.cli.output import (
    json_wanted,
    note,
    print_json,
    print_table,
    show_message,
    show_record,
    show_value,
)

if TYPE_CHECKING:
    import sqlite3

    from collidium.platform import Platform
    from collidium.settings import Settings
    from collidium_plugins.local_hub.accounts import HubAccount
    from collidium_plugins.local_hub.store import Store

#: Columns of the file with sign-in links.
_LINK = ("name", "display_name", "email", "link", "expires_at")


@click.group()
def user() -> None:
    """Create accounts on the local hub of this machine; list, reset, remove and erase them."""


@user.command()
@click.argument("name", required=False)
@click.option(
    "--new-token", is_flag=True, help="For an existing account: make a token that replaces the earlier ones."
)
@click.option("--csv", "roster", type=EXISTING_FILE, help="Create an account and a sign-in link per line.")
@click.option("--skip-existing", is_flag=True, help="With --csv: ignore accounts that exist.")
@click.option("--output", type=FILE, help="With --csv: write the links to this new file with mode 0600.")
@json_option
def add(
    name: str | None,
    new_token: bool,
    roster: Path | None,
    skip_existing: bool,
    output: Path | None,
) -> None:
    """Create account NAME and print its token on the last line. The token is not shown again.

    With --csv, create an account for each line of a file, or none if the file has an error, and print as CSV
    a link for each that signs in once within two weeks. The header of the file is: name, and optionally
    display name and email.

    \b
    collidium user add alice
    collidium user add --csv students.csv --output links.csv
    """
    if (name is None) == (roster is None):
        raise click.UsageError("give one of NAME and --csv")
    if roster is None:
        _add_one(name or "", new_token=new_token)
    else:
        _add_all(roster, output, skip_existing=skip_existing)


def _add_one(name: str, *, new_token: bool) -> None:
    from collidium_plugins.local_hub import accounts

    with _store() as (store, _), store.database.writing() as db:
        account = _existing(db, name) if new_token else accounts.add(db, name)
        token = accounts.make_token(db, account)
    if json_wanted():
        print_json({"name": account.name, "created_at": account.created_at, "token": token})
    else:
        click.echo(f"Account {account.name} on the local hub. Its token:")
        click.echo(token)


def _add_all(path: Path, output: Path | None, *, skip_existing: bool) -> None:
    from collidium.errors import Conflict
    from collidium.files.durable import write_once
    from collidium_plugins.local_hub import roster

    with path.open("rb") as file:
        people, problems = roster.read_roster(file.read(roster.ROSTER_BYTES + 1))
    with _store() as (store, settings), store.database.writing() as db:
        made = roster.add_people(db, people, problems, skip_existing=skip_existing)
        links = [_link(db, account, settings) for account in made]
        # Before the transaction is committed, so that no link is lost.
        if output is not None and not write_once(output, _as_csv(links)):
            raise Conflict(f"{output} exists already: give a new file")
    note(f"{len(made)} accounts created; {len(people) - len(made)} existed already.")
    _note_address(settings)
    if output is None and json_wanted():
        print_json(links)
    elif output is None:
        click.echo(_as_csv(links), nl=False)


@user.command("list")
@json_option
def list_() -> None:
    """List the accounts of the local hub, and unused sign-in links.

    \b
    collidium user list
    """
    from collidium_plugins.local_hub import accounts

    with _store() as (store, _), store.database.reading() as db:
        listed = accounts.list_accounts(db)
    records = [
        {
            "name": account.name,
            "display_name": account.display_name,
            "email": account.email,
            "created_at": account.created_at,
            "link_until": until,
        }
        for account, until in listed
    ]
    columns = ("account", "display name", "email", "since", "link until")
    show_value(records, lambda _: print_table(columns, [tuple(record.values()) for record in records]))


@user.command()
@click.argument("name")
@json_option
def reset(name: str) -> None:
    """Revoke the tokens and sign-ins of account NAME, and print a link that signs in once.

    \b
    collidium user reset alice
    """
    from collidium_plugins.local_hub import accounts

    with _store() as (store, settings), store.database.writing() as db:
        account = _existing(db, name)
        accounts.revoke_all(db, account)
        link = _link(db, account, settings)
    _note_address(settings)
    show_value(link, lambda link: click.echo(link["link"]))


@user.command()
@click.argument("name")
@json_option
def remove(name: str) -> None:
    """Remove account NAME if it was never used: it owns no repository and never called the server.

    \b
    collidium user remove alice
    """
    from collidium.errors import Conflict

    async def run(_: Platform) -> None:
        from collidium import erasing
        from collidium_plugins.local_hub import accounts

        with _store() as (store, __):
            with store.database.reading() as db:
                account = _existing(db, name)
                owns = accounts.count_repositories(db, account)
            if owns or await erasing.preview(account.name):
                raise Conflict(f"{account.name} was used: erase it with `collidium user erase`")
            store.erase(account.id)

    on_platform(run)
    show_message({"name": name, "removed": True}, f"Account {name} is removed.")


@user.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Erase. Without this option, only show what would be erased.")
@json_option
def erase(name: str, yes: bool) -> None:
    """Erase the personal data of account NAME.

    The account gets a neutral name. Its files, links, tokens, sessions, webhooks and repositories on the
    local hub are deleted. Its ledger, usage and scores stay, so that the ranks of others do not change.
    Repeat an interrupted run.

    \b
    collidium user erase alice
    collidium user erase alice --yes
    """

    async def run(platform: Platform) -> dict[str, object]:
        from collidium import erasing
        from collidium_plugins.local_hub import accounts

        with _store() as (store, _):
            with store.database.reading() as db:
                account = accounts.find(db, name)
                repositories = accounts.count_repositories(db, account) if account else 0
            known = await erasing.preview(name)
            if yes and known:
                known = await erasing.close(known, actor="command")
            if yes and account:
                store.erase(account.id)
            if yes and known:
                await erasing.finish(known, platform.storage)
        return {
            "account": (known or account) and name,
            "becomes": known and known.becomes,
            "credits": known and known.credits,
            "submissions": known.submissions if known else 0,
            "requests": known.requests if known else 0,
            "files": len(known.files) if known else 0,
            "repositories": repositories,
            "erased": yes,
        }

    done = on_platform(run)
    show_record(done, done)
    if done["account"] is None:
        note(f"There is no account {name!r} to erase.")
    else:
        note("Erased." if yes else "Nothing has changed: add --yes to erase this permanently.")


def _existing(db: sqlite3.Connection, name: str) -> HubAccount:
    from collidium.errors import NotFound
    from collidium_plugins.local_hub import accounts

    account = accounts.find(db, name)
    if account is None:
        raise NotFound(f"there is no account {name[:100]!r} on the local hub")
    return account


def _link(db: sqlite3.Connection, account: HubAccount, settings: Settings) -> dict[str, str]:
    from collidium_plugins.local_hub import roster

    secret, expires_at = roster.make_link(db, account)
    link = f"{settings.public_url or settings.base_url}/hub/join?link={secret}"
    return dict(
        zip(_LINK, (account.name, account.display_name, account.email, link, expires_at), strict=True)
    )


def _note_address(settings: Settings) -> None:
    if not settings.public_url:
        note(f"Links begin with {settings.base_url}; set PLATFORM_PUBLIC_URL if browsers use another.")


def _as_csv(links: Sequence[dict[str, str]]) -> str:
    text = io.StringIO()
    table: csv.DictWriter[str] = csv.DictWriter(text, _LINK, lineterminator="\n")
    table.writeheader()
    table.writerows(links)
    return text.getvalue()


@contextmanager
def _store() -> Iterator[tuple[Store, Settings]]:
    from collidium import settings
    from collidium_plugins.local_hub.store import Store

    loaded = settings.load()
    store = Store(loaded.data_dir / "hub")
    try:
        yield store, loaded
    finally:
        store.close()
