"""The credit ledger: append-only, exact to three places, its sum always the balance on the account."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Literal

from collidium.accounts.models import Account, CreditTransaction
from collidium.database import Statement, connection, insertion, stored, transactional, unsaved
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
#: No entry and, but for refunds, no balance is larger: far above any use, far below what the columns hold.
LARGEST: Final = Decimal(10) ** 9


class InsufficientCredits(PaymentRequired):
    """The entry would take the balance below zero."""


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
    """Write one entry and change the balance, both or neither. The only way credits ever move.

    ``reference`` with ``reason`` is unique in an account: the same pair again returns the entry that is
    there and changes nothing, so that a retry never pays twice. Raises :class:`InsufficientCredits`, and
    :class:`~collidium.errors.InvalidInput` for an amount that is no credit amount.
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
    """The same as statements, for a transaction that has the account locked and a reference that is new.

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
    # What was charged comes back whatever was granted meanwhile, or its request could never end.
    if after > LARGEST and reason not in ("simulation_refund", "evaluation_refund"):
        raise Conflict(f"no balance may exceed {LARGEST} credits")
    return after


def check_amount(delta: Decimal) -> None:
    """Raise InvalidInput unless ``delta`` is finite, not zero, to three places, and of sane size."""
    if not delta.is_finite() or delta == 0 or abs(delta) > LARGEST:
        raise InvalidInput(f"an amount of credits is a number between -{LARGEST} and {LARGEST}, and not 0")
    if delta != delta.quantize(PLACES):
        raise InvalidInput("an amount of credits has at most three decimal places")


async def entries(account_id: int, *, limit: int, before: int | None = None) -> list[Transaction]:
    """Up to ``limit`` entries of an account, newest first, those with an id below ``before``."""
    query = CreditTransaction.filter(account_id=account_id)
    if before is not None:
        query = query.filter(id__lt=before)
    return [Transaction.of(row) for row in await query.order_by("-id").limit(limit)]


async def count_entries(account_id: int, reason: Reason, references: Collection[str]) -> int:
    """How many of the ``references`` an account has an entry for."""
    query = CreditTransaction.filter(account_id=account_id, reason=reason, reference__in=list(references))
    return await query.count() if references else 0


async def audit() -> list[Mismatch]:
    """Every account whose balance is not the exact sum of its entries; none is the proof."""
    _, rows = await connection().execute_query(_MISMATCHES)
    return [
        Mismatch(row["hub_username"], Decimal(row["balance"]) * PLACES, Decimal(row["total"]) * PLACES)
        for row in rows
    ]


#: One statement, so that balances and entries are those of one moment; summed in whole thousandths, because
#: SQLite would sum decimals as floats.
_MISMATCHES: Final = """
SELECT * FROM (
    SELECT a.id, a.hub_username, CAST(ROUND(a.credits * 1000) AS BIGINT) AS balance,
           COALESCE(SUM(CAST(ROUND(t.delta * 1000) AS BIGINT)), 0) AS total
    FROM accounts a LEFT JOIN credit_transactions t ON t.account_id = a.id
    GROUP BY a.id, a.hub_username, a.credits
) sums WHERE balance <> total ORDER BY id
"""
