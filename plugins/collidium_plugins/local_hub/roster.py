"""Accounts from a CSV file, and links with which their users sign in once.

A link also shows the account's token, as the hub has no passwords. GET changes nothing.
"""

from __future__ import annotations

import csv
import io
import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from collidium.errors import InvalidInput
from collidium.runtime import display_names
from collidium_plugins.local_hub import accounts
from collidium_plugins.local_hub.accounts import HubAccount, digest
from collidium_plugins.local_hub.names import is_account_name
from collidium_plugins.local_hub.openid import grants
from collidium_plugins.local_hub.store import later, now

LINK_DAYS: Final = 14
#: Maximum size and number of people of a file.
ROSTER_BYTES: Final = 4 * 1024**2
ROSTER_PEOPLE: Final = 10_000
DISPLAY_NAME_LENGTH: Final = 100
_COLUMNS: Final = {"name": "name", "display name": "display_name", "email": "email", "e mail": "email"}
_EMAIL: Final = re.compile(r"[!-?A-~]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,187}[A-Za-z0-9])?")

Problem = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Person:
    """A person to create an account for, on a line of a file."""

    line: int
    name: str
    display_name: str
    email: str

    def problems(self) -> Iterator[Problem]:
        """Yield everything that is invalid."""
        if not is_account_name(self.name):
            yield self.problem("name", accounts.bad_name(self.name))
        if wrong := display_names.problem(self.display_name, DISPLAY_NAME_LENGTH):
            yield self.problem("display name", wrong)
        if self.email and not _EMAIL.fullmatch(self.email):
            yield self.problem("email", f"not an e-mail address: {self.email[:100]!r}")

    def problem(self, field: str, detail: str) -> Problem:
        """Return an error about a column."""
        return {"line": self.line, "field": field, "detail": detail}


def _person(line: int, name: str, display_name: str = "", email: str = "") -> Person:
    """A person with normalized names."""
    return Person(line, name.strip(), display_names.normalized(display_name), email.strip())


def read_roster(content: bytes) -> tuple[list[Person], list[Problem]]:
    """Read a CSV file with a header: name, and optionally display name and e-mail.

    Returns the people and the errors in lines, for :func:`add_people`. Raises InvalidInput for another file.
    """
    if len(content) > ROSTER_BYTES:
        raise InvalidInput(f"the roster is larger than {ROSTER_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _invalid([{"line": line, "detail": "not UTF-8: save the file as CSV UTF-8"}]) from None
    heading = text.partition("\n")[0]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=heading.count), strict=True)
    found: list[Person] = []
    problems: list[Problem] = []
    try:
        columns = _columns(next(rows, []))
        for row in rows:
            if len(row) == len(columns):
                found.append(_person(rows.line_num, **dict(zip(columns, row, strict=True))))
            elif row:
                detail = f"{len(row)} values for {len(columns)} columns"
                problems.append({"line": rows.line_num, "detail": detail})
    except csv.Error as error:
        problems.append({"line": rows.line_num, "detail": str(error)})
    if len(found) > ROSTER_PEOPLE:
        raise InvalidInput(f"the roster has more than {ROSTER_PEOPLE:,} people")
    first: dict[str, int] = {}
    for each in found:
        if (earlier := first.setdefault(each.name.casefold(), each.line)) != each.line:
            problems.append(each.problem("name", f"{each.name!r} is on line {earlier} already"))
    return found, problems or ([] if found else [{"line": 1, "detail": "no account is listed"}])


def _columns(heading: list[str]) -> list[str]:
    words = [" ".join(re.split(r"[\s_-]+", cell.strip().casefold())) for cell in heading]
    columns = [_COLUMNS.get(word, "") for word in words]
    if "name" not in columns or "" in columns or len(set(columns)) < len(columns):
        raise _invalid(
            [{"line": 1, "detail": "the columns are: name, display_name, email (the last two optional)"}]
        )
    return columns


def add_people(
    db: sqlite3.Connection, people: Sequence[Person], known: Sequence[Problem], *, skip_existing: bool = False
) -> list[HubAccount]:
    """Create an account for each, or for none; ``skip_existing`` ignores those who have one.

    Raises InvalidInput with all problems, including the ``known`` ones.
    """
    problems = [*known, *(problem for each in people for problem in each.problems())]
    new = [each for each in people if accounts.find(db, each.name) is None]
    if not skip_existing:
        existing = set(people) - set(new)
        problems += [each.problem("name", f"the account {each.name!r} exists already") for each in existing]
    if problems:
        raise _invalid(sorted(problems, key=lambda problem: int(problem["line"])))
    return [accounts.add(db, each.name, each.display_name, each.email) for each in new]


def _invalid(problems: list[Problem]) -> InvalidInput:
    return InvalidInput("no account was created", errors=problems)


# -- sign-in links ---------------------------------------------------------------------------------------


def make_link(db: sqlite3.Connection, account: HubAccount) -> tuple[str, str]:
    """Create a secret that signs in once and replaces an earlier one; returns it and its expiry."""
    secret, expires_at = secrets.token_urlsafe(32), later(LINK_DAYS * 86_400)
    db.execute("DELETE FROM sign_in_links WHERE account_id = ? OR expires_at <= ?", (account.id, now()))
    db.execute("INSERT INTO sign_in_links VALUES (?, ?, ?)", (digest(secret), account.id, expires_at))
    return secret, expires_at


def link_account(db: sqlite3.Connection, secret: str) -> HubAccount | None:
    """Return the account that a link signs in; None for an invalid, used or expired one."""
    row = db.execute(
        f"SELECT {accounts.COLUMNS} FROM sign_in_links l JOIN accounts a ON a.id = l.account_id "  # noqa: S608 -- constant names
        "WHERE l.sha256 = ? AND l.expires_at > ?",
        (digest(secret), now()),
    ).fetchone()
    return HubAccount(*row) if row else None


def use_link(
    db: sqlite3.Connection, secret: str, client_id: str, scopes: accounts.Scopes
) -> tuple[str, str] | None:
    """Use a link up. Returns a new token of the account, and one with ``scopes`` for the pages."""
    account = link_account(db, secret)
    if account is None:
        return None
    token = accounts.make_token(db, account)  # revokes the link, too
    return token, grants.issue(db, grants.begin(db, account, client_id, scopes)).access
