"""Erases a person: names, files and sign-ins go; ledger, usage, scores and ranks stay under a neutral name.

First no call of the account is accepted any more, then the files go, then, in one transaction, all that names
the person. Until that has committed the name finds the account, so that a run that was killed is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from collidium import accounts, operations, outbox, sessions, simulations
from collidium.benchmarks.submissions import standing
from collidium.contracts.identity import ERASED
from collidium.database import transactional
from collidium.errors import Conflict, NotFound
from collidium.runtime.failpoints import reached

if TYPE_CHECKING:
    from collidium.contracts.storage import Storage

_ACTION: Final = "erase"


@dataclass(frozen=True, slots=True)
class Erasure:
    """An account that is erased: what it will be called, and what it has."""

    hub_username: str
    becomes: str
    credits: Decimal
    #: What stays without its links and files.
    submissions: int
    requests: int
    #: Keys in the storage.
    files: tuple[str, ...]


async def preview(hub_username: str) -> Erasure | None:
    """What erasing this account would do; None where the platform knows no such account, or has erased it."""
    try:
        account = await accounts.find(hub_username)
    except NotFound:
        return None
    if ERASED.fullmatch(account.hub_username):
        return None
    submissions, predictions = await standing.submitted_by(account.id)
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
    """Accept no call of the account any more, and return what it has then.

    Raises Conflict while it has unfinished simulation requests.
    """
    account = await accounts.find(erasure.hub_username)
    if await operations.recorded(_ACTION, erasure.becomes) is None:
        await operations.record(actor, _ACTION, erasure.becomes, {"banned": account.banned}, "")
    await accounts.set_banned(account.hub_username, True)
    if unfinished := await simulations.unfinished(account.id):
        raise Conflict(
            f"{account.hub_username} has unfinished simulation requests: cancel them, or wait for their "
            f"ends: {', '.join(unfinished)}"
        )
    return await preview(account.hub_username) or erasure


async def finish(erasure: Erasure, storage: Storage) -> None:
    """Delete the files of an account that is closed, then its names."""
    reached("erase.closed")
    for key in erasure.files:
        await storage.delete(key)
    reached("erase.files_deleted")
    await _forget(erasure)


@transactional
async def _forget(erasure: Erasure) -> None:
    name, becomes = erasure.hub_username, erasure.becomes
    account = await accounts.find(name)
    await standing.forget(account.id, name, becomes)
    await simulations.forget(account.id, name, becomes)
    await outbox.forget(account.id)
    await sessions.forget(name)
    await operations.forget(name, becomes)
    earlier = await operations.recorded(_ACTION, becomes)
    await accounts.forget(account.id, becomes, banned=bool(earlier and earlier.details["banned"]))
