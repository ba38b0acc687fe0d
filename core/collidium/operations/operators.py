"""Operators with names, scopes and tokens of their own. ADMIN_TOKEN is that of the first, who has no row."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Collection
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from tortoise.timezone import now

from collidium.contracts.identity import SSO_SUFFIX
from collidium.database import transactional
from collidium.database.statements import RowByKey
from collidium.errors import Conflict, InvalidInput, NotFound
from collidium.operations import models
from collidium.operations.actions import record
from collidium.records import Operator


class Scope(StrEnum):
    """What an operator may see and do."""

    ALL = "all"
    ACCOUNTS = "accounts"
    BENCHMARKS = "benchmarks"
    REPORTS = "reports"
    SIMULATIONS = "simulations"


#: Who has ADMIN_TOKEN.
FIRST: Final = Operator(name="admin", scopes=(Scope.ALL,), created_at=datetime.fromtimestamp(0, UTC))
#: Names in the audit log that no operator may have.
_RESERVED: Final = frozenset({FIRST.name, "command", "calendar"})
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOKEN: Final = re.compile(r"collidium_operator_[A-Za-z0-9_-]{43}")
_by_digest: Final = RowByKey(models.Operator, "digest")


def allows(operator: Operator, scope: Scope, challenge: str | None = None) -> bool:
    """Return whether the operator has the scope; an organiser has it for one ``challenge`` alone."""
    held = scope in operator.scopes or Scope.ALL in operator.scopes
    return held and operator.challenge in {None, challenge}


async def operator_of(token: str) -> Operator | None:
    """Return the operator of a token; None for one that is unknown or withdrawn."""
    row = await _by_digest.get_or_none(_digest(token)) if _TOKEN.fullmatch(token) else None
    return None if row is None or row.withdrawn_at else _view(row)


def operator_by_groups(name: str, groups: Collection[str], opens: Collection[str]) -> Operator | None:
    """Return the operator that someone is by groups of single sign-on; None where these open nothing.

    ``opens`` are groups with a scope each, as ``helpdesk=accounts``.
    """
    held = (one.partition("=") for one in opens)
    scopes = {scope for group, _, scope in held if f"{group}{SSO_SUFFIX}" in groups}
    return Operator(name=name, scopes=tuple(sorted(scopes)), created_at=now()) if scopes else None


async def operators() -> list[Operator]:
    """All operators by name, also withdrawn ones."""
    return [_view(row) for row in await models.Operator.all().order_by("name")]


@transactional
async def add_operator(
    name: str, scopes: Collection[str], challenge: str | None = None, *, actor: str, http_request_id: str
) -> Operator:
    """Add an operator and return it with its token, which is stored as a hash alone.

    Parameters
    ----------
    name : str
        As in the audit log. The name of a withdrawn operator may be given again.
    scopes : collection of str
    challenge : str, optional
        Makes an organiser, who has the scope ``benchmarks`` for this challenge and no other scope.

    Raises
    ------
    InvalidInput
        With all problems.
    Conflict
        For a name that is in use.
    """
    if problems := _problems(name, set(scopes), challenge):
        raise InvalidInput("the operator was not added", errors=problems)
    token = f"collidium_operator_{secrets.token_urlsafe(32)}"
    new = models.Operator(name=name, digest=_digest(token), withdrawn_at=now())
    await models.Operator.bulk_create([new], ignore_conflicts=True)
    row = await models.Operator.select_for_update().get(name=name)
    if row.withdrawn_at is None:
        raise Conflict(f"there is an operator {name!r} already: withdraw it first")
    row.digest, row.challenge = _digest(token), challenge
    row.scopes, row.created_at, row.withdrawn_at = " ".join(sorted(set(scopes))), now(), None
    await row.save()
    details = {"scopes": row.scopes} | ({"challenge": challenge} if challenge else {})
    await record(actor, "add_operator", f"operator {name}", details, http_request_id)
    return _view(row, token)


@transactional
async def withdraw_operator(name: str, *, actor: str, http_request_id: str) -> Operator:
    """Withdraw an operator, whose token is refused from the next call on. Idempotent; raises NotFound."""
    row = None
    if _NAME.fullmatch(name):
        row = await models.Operator.select_for_update().get_or_none(name=name)
    if row is None:
        raise NotFound(f"there is no operator {name[:100]!r}")
    if row.withdrawn_at is None:
        row.withdrawn_at = now()
        await row.save(update_fields=["withdrawn_at"])
        await record(actor, "withdraw_operator", f"operator {name}", {}, http_request_id)
    return _view(row)


def _problems(name: str, scopes: set[str], challenge: str | None) -> list[dict[str, str]]:
    problems = []
    if not _NAME.fullmatch(name) or name in _RESERVED or name.endswith(SSO_SUFFIX):
        problems.append(
            (
                "name",
                "1 to 64 of a-z 0-9 . _ @ -, from a letter or digit on; not admin, command or calendar, "
                f"nor one that ends in {SSO_SUFFIX}",
            )
        )
    if not scopes or not scopes <= set(Scope):
        problems.append(("scopes", f"some of: {', '.join(Scope)}"))
    if challenge is not None and not _CHALLENGE.fullmatch(challenge):
        problems.append(("challenge", "not a name that a challenge may have"))
    if challenge is not None and scopes != {Scope.BENCHMARKS}:
        problems.append(("scopes", "an organiser of one challenge has the scope benchmarks alone"))
    return [{"field": field, "detail": detail} for field, detail in problems]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _view(row: models.Operator, token: str | None = None) -> Operator:
    return Operator.of(row, scopes=tuple(row.scopes.split()), token=token)
