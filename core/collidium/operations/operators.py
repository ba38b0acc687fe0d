"""Operators with scopes and tokens. The first one authenticates with ADMIN_TOKEN and has no row."""

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
    """A permission of an operator."""

    ALL = "all"
    ACCOUNTS = "accounts"
    BENCHMARKS = "benchmarks"
    REPORTS = "reports"
    SIMULATIONS = "simulations"


#: The operator who authenticates with ADMIN_TOKEN.
FIRST_OPERATOR: Final = Operator(name="admin", scopes=(Scope.ALL,), created_at=datetime.fromtimestamp(0, UTC))
#: Actors in the audit log that are not operators.
_RESERVED: Final = frozenset({FIRST_OPERATOR.name, "command", "calendar"})
NAME: Final = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
CHALLENGE: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TOKEN: Final = re.compile(r"collidium_operator_[A-Za-z0-9_-]{43}")
_by_digest: Final = RowByKey(models.Operator, "digest")


def allows(operator: Operator, scope: Scope, challenge: str | None = None) -> bool:
    """Whether an operator has the scope; an organiser has it only for its ``challenge``."""
    held = scope in operator.scopes or Scope.ALL in operator.scopes
    return held and operator.challenge in {None, challenge}


async def operator_of(token: str) -> Operator | None:
    """Return the operator of a token; None if it is unknown or withdrawn."""
    row = await _by_digest.get_or_none(_digest(token)) if _TOKEN.fullmatch(token) else None
    return None if row is None or row.withdrawn_at else _view(row)


def operator_by_groups(name: str, groups: Collection[str], opens: Collection[str]) -> Operator | None:
    """Return the operator whom groups of single sign-on define, or None.

    ``opens`` are groups with their scopes, for example ``helpdesk=accounts``.
    """
    held = (one.partition("=") for one in opens)
    scopes = {scope for group, _, scope in held if f"{group}{SSO_SUFFIX}" in groups}
    return Operator(name=name, scopes=tuple(sorted(scopes)), created_at=now()) if scopes else None


async def operators() -> list[Operator]:
    """Return all operators by name, including withdrawn ones."""
    return [_view(row) for row in await models.Operator.all().order_by("name")]


@transactional
async def add_operator(
    name: str, scopes: Collection[str], challenge: str | None = None, *, actor: str, http_request_id: str
) -> Operator:
    """Add an operator and return it with its token, of which only a hash is stored.

    Parameters
    ----------
    name : str
        As in the audit log. The name of a withdrawn operator can be reused.
    scopes : collection of str
    challenge : str, optional
        Makes an organiser, who has only the scope ``benchmarks`` and only for this challenge.

    Raises
    ------
    InvalidInput
        With all problems.
    Conflict
        If the name is in use.
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
    """Withdraw an operator; its token is rejected from the next call on. Idempotent; raises NotFound."""
    row = None
    if NAME.fullmatch(name):
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
    if not NAME.fullmatch(name) or name in _RESERVED or name.endswith(SSO_SUFFIX):
        problems.append(
            (
                "name",
                "1 to 64 of a-z 0-9 . _ @ -, from a letter or digit on; not admin, command or calendar, "
                f"nor one that ends in {SSO_SUFFIX}",
            )
        )
    if not scopes or not scopes <= set(Scope):
        problems.append(("scopes", f"some of: {', '.join(Scope)}"))
    if challenge is not None and not CHALLENGE.fullmatch(challenge):
        problems.append(("challenge", "not a name that a challenge may have"))
    if challenge is not None and scopes != {Scope.BENCHMARKS}:
        problems.append(("scopes", "an organiser of one challenge may only have the scope benchmarks"))
    return [{"field": field, "detail": detail} for field, detail in problems]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _view(row: models.Operator, token: str | None = None) -> Operator:
    return Operator.of(row, scopes=tuple(row.scopes.split()), token=token)
