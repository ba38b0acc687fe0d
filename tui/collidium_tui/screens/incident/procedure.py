"""The incident procedure: six steps, and what of them the audit log and the operator say is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collidium.client import AuditEntry

#: How long an incident that is over is still shown, for its refunds.
REMEMBERED: Final = timedelta(days=1)


class Step(Enum):
    """The steps in their order; the value is what the operator reads."""

    FREEZE = "Freeze"
    INVESTIGATE = "Investigate"
    BAN = "Ban, if needed"
    FIX = "Fix the cause"
    UNFREEZE = "Unfreeze"
    REFUND = "Refund, if needed"


#: Steps that the server reports; the operator marks the others.
KNOWN_TO_SERVER: Final = frozenset({Step.FREEZE, Step.UNFREEZE})


@dataclass(frozen=True, slots=True)
class Mark:
    """The operator's mark that a step is done or not needed, with a note on the result."""

    at: datetime
    note: str = ""


def join_logs(newest: tuple[AuditEntry, ...], known: tuple[AuditEntry, ...]) -> tuple[AuditEntry, ...] | None:
    """The log, newest first: its newest entries and those known before; None if there is a gap between."""
    if not known:
        return newest
    ids = [entry.id for entry in newest]
    return newest[: ids.index(known[0].id)] + known if known[0].id in ids else None


@dataclass(frozen=True, slots=True)
class Incident:
    """The freeze that stands, or the last one, and what operators did since it began, newest first.

    Without a freeze worth remembering there is neither ``began`` nor a entry.
    """

    frozen: bool = False
    began: AuditEntry | None = None
    ended: AuditEntry | None = None
    actions: tuple[AuditEntry, ...] = ()

    @classmethod
    def from_log(cls, log: Sequence[AuditEntry], frozen: bool, now: datetime) -> Incident:
        """Read it from the audit log, newest first; ``frozen`` where the log does not reach back that far."""
        began = ended = None
        length = 0
        for number, entry in enumerate(log, 1):
            if entry.action == "freeze":
                began, length = entry, number
            elif entry.action == "unfreeze":
                if began is not None:
                    break
                ended = entry
        if began is None or (ended is not None and now - ended.at > REMEMBERED):
            return cls(frozen)
        return cls(ended is None, began, ended, tuple(log[:length]))

    @property
    def banned(self) -> list[str]:
        """The accounts that were banned and still are, as far as it is known here, first to last."""
        names: dict[str, None] = {}
        for entry in reversed(self.actions):
            if entry.action == "ban":
                names[entry.target] = None
            elif entry.action == "unban":
                names.pop(entry.target, None)
        return list(names)

    @property
    def refunds(self) -> list[AuditEntry]:
        """The requests that were refunded, the last one first."""
        return [entry for entry in self.actions if entry.action == "refund"]

    def done(self, step: Step, marks: Mapping[Step, Mark]) -> bool:
        """Whether nothing is left to do of a step."""
        known = {
            Step.FREEZE: self.frozen or self.began is not None,
            Step.BAN: bool(self.banned),
            Step.UNFREEZE: self.ended is not None,
            Step.REFUND: bool(self.refunds),
        }
        return known.get(step, False) or step in marks

    def next_step(self, marks: Mapping[Step, Mark]) -> Step | None:
        """The first step that is not done; None when all are."""
        return next((step for step in Step if not self.done(step, marks)), None)
