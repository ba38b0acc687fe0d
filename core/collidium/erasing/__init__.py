"""Erases an account: deletes names, files and sign-ins; ledger, scores and ranks stay under a neutral name.

First the account is closed, then its files are deleted, then, in one transaction, all occurrences of its
name. Until that has committed the name finds the account, so that a killed run can be repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from collidium import accounts, operations, outbox, sessions, simulations
from collidium.contracts.identity import ERASED
from collidium.database import transactional
from collidium.errors import Conflict, NotFound
from collidium.runtime.failpoints import reached
from collidium.submissions import rulings

if TYPE_CHECKING:
    from collidium.contracts.storage import Storage

_ACTION: Final = "erase"


@dataclass(frozen=True, slots=True)
class Erasure:
    """The erasure of an account: its new name, and what it has."""

    hub_username: str
    becomes: str
    credits: Decimal
    #: Numbers of submissions and requests, which stay without links and files.
    submissions: int
    requests: int
    #: Storage keys of the files to delete.
    files: tuple[str, ...]


async def preview(hub_username: str) -> Erasure | None:
    """The erasure of an account; None if it does not exist or is erased already."""
    try:
        account = await accounts.find(hub_username)
    except NotFound:
        return None
    if ERASED.fullmatch(account.hub_username):
        return None
    submissions, predictions = await rulings.submitted_by(account.id)
    requests, outputs = await simulations.ordered_by(account.id)
    return Erasure(
        account.hub_username,
        f"erased-{account.id}",
        account.credits,
        submissions,
        requests,
        (*predictions, *outputs),
    )


@transactional
async def close(erasure: Erasure, *, actor: str) -> Erasure:
    """Ban the account, and return its erasure; raises Conflict for unfinished simulation requests."""
    account = await accounts.find(erasure.hub_username)
    if await operations.recorded(_ACTION, erasure.becomes) is None:
        await operations.record(actor, _ACTION, erasure.becomes, {"banned": account.banned}, "")
    await accounts.set_banned(account.hub_username, True)
    if unfinished := await simulations.unfinished(account.id):
        raise Conflict(
            f"{account.hub_username} has unfinished simulation requests: cancel them, or wait until "
            f"they end: {', '.join(unfinished)}"
        )
    return await preview(account.hub_username) or erasure


async def finish(erasure: Erasure, storage: Storage) -> None:
    """Delete the files of a closed account, then its names."""
    reached("erase.closed")
    for key in erasure.files:
        await storage.delete(key)
    reached("erase.files_deleted")
    await _forget(erasure)


@transactional
async def _forget(erasure: Erasure) -> None:
    name, becomes = erasure.hub_username, erasure.becomes
    account = await accounts.find(name)
    await rulings.forget(account.id, name, becomes)
    await simulations.forget(account.id, name, becomes)
    await outbox.forget(account.id)
    await sessions.forget(name)
    await operations.forget(name, becomes)
    earlier = await operations.recorded(_ACTION, becomes)
    await accounts.forget(account.id, becomes, banned=bool(earlier and earlier.details["banned"]))
