"""Leases of rows: which process works on a row, and until when.

A process claims rows with a token of its own, renews the lease while it works on them, and releases it. The
lease of a killed process expires, and another one claims the row. A change under a lease that another process
has taken over raises :class:`LeaseLost`, so that two processes cannot both change a row.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, Generic, TypeVar

from tortoise.expressions import CombinedExpression, Q
from tortoise.models import Model
from tortoise.queryset import QuerySet
from tortoise.timezone import now

from collidium.database.connections import transactional

#: How often a lease is renewed before it would expire.
RENEWALS: Final = 3

Row = TypeVar("Row", bound=Model)


class LeaseLost(RuntimeError):
    """Another process does the work now, or it has ended; the change was not made."""


@dataclass(frozen=True, slots=True)
class Leases(Generic[Row]):
    """The leases of the rows of a table."""

    table: type[Row]
    #: The column with the end of a lease.
    until: str
    #: The column with the token of a lease, which differs each time that a row is claimed; empty or 0: none.
    lease: str = "lease"
    #: The rows whose work has not ended.
    unended: Q = field(default_factory=Q)

    async def claim(self, due: QuerySet[Row], duration: timedelta, **fields: Any) -> list[Row]:
        """Lease the rows of a query, but those that another process is claiming, and set columns.

        The lease begins when the rows are locked. The column of the token may be among ``fields``; by default
        it is random.
        """
        return await _claim(self, due, duration, fields)

    async def take(self, locked: Sequence[Row], until: datetime, **fields: Any) -> None:
        """Lease rows that this transaction has locked, and set columns, as :meth:`claim` does.

        An SQL expression is not copied to the rows in memory.
        """
        if not locked:
            return
        fields = {self.lease: uuid.uuid4().hex, self.until: until} | fields
        await self.table.filter(pk__in=[row.pk for row in locked]).update(**fields)
        known = {name: value for name, value in fields.items() if not isinstance(value, CombinedExpression)}
        for row in locked:
            row.update_from_dict(known)

    async def held(self, claimed: Row) -> Row:
        """Lock a claimed row, within a transaction, and return it as it is now. Raises LeaseLost."""
        row = await self._of(claimed).select_for_update().first()
        if row is None:
            raise LeaseLost(claimed.pk)
        return row

    async def require(self, claimed: Row) -> None:
        """Raise LeaseLost unless the lease is still held, before a side effect outside the database."""
        if not await self._of(claimed).exists():
            raise LeaseLost(claimed.pk)

    async def change(self, claimed: Row, **fields: Any) -> None:
        """Update columns of a claimed row, here and in the database. Raises LeaseLost.

        Where a transaction around it is rolled back, the row in memory is no longer that of the database.
        """
        if not await self._of(claimed).update(**fields):
            raise LeaseLost(claimed.pk)
        claimed.update_from_dict(fields)

    async def renew(self, claimed: Row, until: datetime, **fields: Any) -> None:
        """Extend a lease, and update columns. Raises LeaseLost."""
        await self.change(claimed, **{self.until: until}, **fields)

    async def release(self, claimed: Row, due: datetime, **fields: Any) -> None:
        """End a lease, so that the row is due at a moment, and update columns. Raises LeaseLost."""
        await self.change(claimed, **{self.lease: "", self.until: due}, **fields)

    async def renew_all(self, tokens: Iterable[str], until: datetime) -> None:
        """Extend all leases with these tokens; those that another process has taken over stay as they are."""
        await self.table.filter(**{f"{self.lease}__in": list(tokens)}).update(**{self.until: until})

    async def release_all(self, tokens: Iterable[str]) -> None:
        """End all leases with these tokens."""
        released = {self.lease: "", self.until: None}
        await self.table.filter(**{f"{self.lease}__in": list(tokens)}).update(**released)

    def _of(self, claimed: Row) -> QuerySet[Row]:
        token = getattr(claimed, self.lease)
        if not token:
            raise LeaseLost(claimed.pk)
        return self.table.filter(self.unended, **{"pk": claimed.pk, self.lease: token})


@transactional
async def _claim(
    leases: Leases[Row], due: QuerySet[Row], duration: timedelta, fields: dict[str, Any]
) -> list[Row]:
    rows = await due.select_for_update(skip_locked=True)
    await leases.take(rows, now() + duration, **fields)
    return rows
