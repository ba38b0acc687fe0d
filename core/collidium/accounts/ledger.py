"""The append-only credit ledger, exact to three decimal places; its sum is always the account's balance."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from collidium.accounts.models import Account, CreditTransaction
from collidium.database import (
    Statement,
    connection,
    in_chunks,
    insertion,
    newest,
    stored,
    transactional,
    unsaved,
)
from collidium.errors import Conflict, InvalidInput, PaymentRequired
from collidium.records import Transaction

Reason = Literal[
    "signup_grant",
    "simulation_charge",
    "simulation_refund",
    "evaluation_charge",
    "evaluation_refund",
    "benchmark_best",
    "admin_grant",
]

PLACES: Final = Decimal("0.001")
#: Maximum of an entry and, except for refunds, of a balance.
LARGEST: Final = Decimal(10) ** 9


class InsufficientCredits(PaymentRequired):
    """The entry would make the balance negative."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """An account whose balance is not the sum of its entries."""

    hub_username: str
    balance: Decimal
    entries_sum: Decimal


@transactional
async def post(
    account_id: int, delta: Decimal, *, reason: Reason, reference: str, note: str = ""
) -> Transaction:
    """Add an entry and change the balance in one transaction.

    ``reason`` and ``reference`` are unique within an account: repeating them returns the existing entry, so
    that a retry does not pay twice. Raises :class:`InsufficientCredits`, and
    :class:`~collidium.errors.InvalidInput` for an invalid amount.
    """
    check_amount(delta)
    account = await Account.select_for_update().get(id=account_id)
    written = await CreditTransaction.get_or_none(account_id=account_id, reason=reason, reference=reference)
    if written is not None:
        if written.delta != delta:
            raise Conflict(f"{reason} {reference} is in the ledger already, with another amount")
        return Transaction.of(written)
    balance = _balance_after(account.credits, delta, reason)
    entry = await CreditTransaction.create(
        account_id=account_id,
        delta=delta,
        balance_after=balance,
        reason=reason,
        reference=reference,
        note=note,
    )
    account.credits = balance
    await account.save(update_fields=["credits"])
    return Transaction.of(entry)


def charge(
    account_id: int, balance: Decimal, delta: Decimal, *, reason: Reason, reference: str
) -> list[Statement]:
    """Return the statements of :func:`post`, for a locked account and a new reference.

    Raises what :func:`post` raises.
    """
    check_amount(delta)
    after = _balance_after(balance, delta, reason)
    entry = unsaved(
        CreditTransaction,
        account_id=account_id,
        delta=delta,
        balance_after=after,
        reason=reason,
        reference=reference,
    )
    return [
        insertion(entry),
        Statement(
            "UPDATE accounts SET credits = ? WHERE id = ?", (stored(Account, "credits", after), account_id)
        ),
    ]


def _balance_after(balance: Decimal, delta: Decimal, reason: Reason) -> Decimal:
    after = balance + delta
    if after < 0 and delta < 0:
        raise InsufficientCredits(f"this takes {-delta} credits, the balance is {balance}")
    # A refund must not fail, or its request could never end.
    if after > LARGEST and reason not in ("simulation_refund", "evaluation_refund"):
        raise Conflict(f"no balance may exceed {LARGEST} credits")
    return after


def check_amount(delta: Decimal) -> None:
    """Raise InvalidInput unless ``delta`` is finite, not 0, within limits, and has at most three decimals."""
    if not delta.is_finite() or delta == 0 or abs(delta) > LARGEST:
        raise _invalid_amount(f"an amount of credits is a number between -{LARGEST} and {LARGEST}, and not 0")
    if delta != delta.quantize(PLACES):
        raise _invalid_amount("an amount of credits has at most three decimal places")


def _invalid_amount(detail: str) -> InvalidInput:
    return InvalidInput(detail, errors=[{"field": "delta", "detail": detail}])


async def entries(account_id: int, *, limit: int, before: int | None = None) -> list[Transaction]:
    """Return up to ``limit`` entries of an account with an id below ``before``, newest first."""
    rows = newest(CreditTransaction.filter(account_id=account_id), limit, before)
    return [Transaction.of(row) for row in await rows]


async def references(account_ids: Collection[int], reason: Reason) -> set[tuple[int, str]]:
    """Return account and reference of all entries of accounts for a reason."""
    found: set[tuple[int, str]] = set()
    for ids in in_chunks(account_ids):
        rows = CreditTransaction.filter(account_id__in=ids, reason=reason)
        found |= {(row.account_id, row.reference) for row in await rows.only("id", "account_id", "reference")}
    return found


async def audit() -> list[Mismatch]:
    """Return the accounts whose balance is not the exact sum of their entries."""
    _, rows = await connection().execute_query(_MISMATCHES)
    return [
        Mismatch(row["hub_username"], Decimal(row["balance"]) * PLACES, Decimal(row["total"]) * PLACES)
        for row in rows
    ]


#: One statement, for a consistent snapshot; summed in thousandths, because SQLite sums decimals as floats.
_MISMATCHES: Final = """
SELECT * FROM (
    SELECT a.id, a.hub_username, CAST(ROUND(a.credits * 1000) AS BIGINT) AS balance,
           COALESCE(SUM(CAST(ROUND(t.delta * 1000) AS BIGINT)), 0) AS total
    FROM accounts a LEFT JOIN credit_transactions t ON t.account_id = a.id
    GROUP BY a.id, a.hub_username, a.credits
) sums WHERE balance <> total ORDER BY id
"""
