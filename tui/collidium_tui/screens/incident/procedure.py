"""The incident procedure: six steps, which are done according to the audit log or the operator's marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Final

from collidium_tui.widgets.text import Times, counted, duration

if TYPE_CHECKING:
    from collidium.client import AuditEntry


#: How long an ended incident is shown, for its refunds.
REMEMBERED: Final = timedelta(days=1)


class Step(Enum):
    """The steps in their order, with their labels."""

    FREEZE = "Freeze"
    INVESTIGATE = "Investigate"
    BAN = "Ban, if needed"
    FIX = "Fix the cause"
    UNFREEZE = "Unfreeze"
    REFUND = "Refund, if needed"


#: Steps that the server records. The operator marks the others.
KNOWN_TO_SERVER: Final = frozenset({Step.FREEZE, Step.UNFREEZE})


@dataclass(frozen=True, slots=True)
class Mark:
    """The operator's mark that a step is done or not needed, with a note on the result."""

    at: datetime
    note: str = ""


def join_logs(newest: tuple[AuditEntry, ...], known: tuple[AuditEntry, ...]) -> tuple[AuditEntry, ...] | None:
    """Join the newest entries with those known before, newest first; None if there is a gap."""
    if not known:
        return newest
    ids = [entry.id for entry in newest]
    return newest[: ids.index(known[0].id)] + known if known[0].id in ids else None


@dataclass(frozen=True, slots=True)
class Incident:
    """The current or last freeze, and the operator actions since it began, newest first.

    Without a recent freeze ``began`` is None and there are no entries.
    """

    frozen: bool = False
    began: AuditEntry | None = None
    ended: AuditEntry | None = None
    actions: tuple[AuditEntry, ...] = ()

    @classmethod
    def from_log(cls, log: Sequence[AuditEntry], frozen: bool, now: datetime) -> Incident:
        """Find the incident in the audit log, newest first. The log may not reach back to the freeze."""
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
        """The accounts that were banned during the incident and not unbanned, in order."""
        names: dict[str, None] = {}
        for entry in reversed(self.actions):
            if entry.action == "ban":
                names[entry.target] = None
            elif entry.action == "unban":
                names.pop(entry.target, None)
        return list(names)

    @property
    def refunds(self) -> list[AuditEntry]:
        """The refunds, newest first."""
        return [entry for entry in self.actions if entry.action == "refund"]

    def done(self, step: Step, marks: Mapping[Step, Mark]) -> bool:
        """Whether a step is done."""
        known = {
            Step.FREEZE: self.frozen or self.began is not None,
            Step.BAN: bool(self.banned),
            Step.UNFREEZE: self.ended is not None,
            Step.REFUND: bool(self.refunds),
        }
        return known.get(step, False) or step in marks

    def next_step(self, marks: Mapping[Step, Mark]) -> Step | None:
        """Return the first step that is not done; None if all are."""
        return next((step for step in Step if not self.done(step, marks)), None)


#: Instructions for each step; ``{back}`` is the key of the checklist.
GUIDES: Final = {
    Step.FREEZE: "Stop the damage first: new simulation requests of all accounts are rejected, running "
    "ones continue. Enter asks and freezes; ctrl+f does so from every screen.",
    Step.INVESTIGATE: "What is wrong, since when, and which account causes it? Enter (or q) shows the "
    "requests, a the accounts, w the audit log; {back} comes back here. Cancel requests that must not "
    "continue. d marks this as done, with what you found.",
    Step.BAN: "Only if an account caused it: Enter asks for an account and a reason. All calls of "
    "the account are rejected from then on. d marks this as not needed.",
    Step.FIX: "Your own work, outside of this console: settings, a plugin, the batch system, the disk. "
    "Enter marks it as done, with what you did.",
    Step.UNFREEZE: "Enter asks and unfreezes; ctrl+f does so from every screen. Then see on the screen "
    "Requests whether new ones go through.",
    Step.REFUND: "Enter asks for a time window and shows which requests failed in it without a full "
    "refund, and what that would cost; nothing is refunded before you confirm it. d marks this "
    "as not needed.",
}


def heading(incident: Incident, times: Times) -> str:
    """Describe the incident, if there is one."""
    began, ended = incident.began, incident.ended
    if began is None:
        return "Frozen: see the audit log for the time." if incident.frozen else "No incident: open."
    if ended is None:
        length = duration(times.now() - began.at)
        note = f": {began.details['note']}" if began.details.get("note") else ""
        return f"INCIDENT for {length}, frozen since {times.show(began.at)} by {began.actor}{note}"
    return f"Incident from {times.show(began.at)} to {times.show(ended.at)}: open again"


def outcome(step: Step, incident: Incident, mark: Mark | None, times: Times) -> str:
    """Describe what was done in a step."""
    done = _by_server(step, incident, times)
    if mark is not None:
        done.append(f"marked {times.time(mark.at)}" + (f": {mark.note}" if mark.note else ""))
    return "; ".join(done)


def _by_server(step: Step, incident: Incident, times: Times) -> list[str]:
    if step is Step.FREEZE and incident.began is not None:
        return [f"{times.time(incident.began.at)} by {incident.began.actor}"]
    if step is Step.UNFREEZE and incident.ended is not None:
        return [f"{times.time(incident.ended.at)} by {incident.ended.actor}"]
    if step is Step.BAN and incident.banned:
        return ["banned: " + ", ".join(incident.banned)]
    if step is Step.REFUND and (refunds := incident.refunds):
        last = refunds[0]
        return [
            f"{counted(len(refunds), 'requests')} refunded, the last {times.time(last.at)} by {last.actor}"
        ]
    return []
