"""The incident in words."""

from __future__ import annotations

from typing import Final

from collidium_tui.screens.incident.procedure import Incident, Mark, Step
from collidium_tui.widgets.text import counted
from collidium_tui.widgets.times import Times, duration

#: What to do in each step; ``{back}`` is the key of the checklist.
GUIDES: Final = {
    Step.FREEZE: "Stop the damage first: new simulation requests of all accounts are refused, those under "
    "way go on. Enter asks and freezes; ctrl+f does so from every screen.",
    Step.INVESTIGATE: "What is wrong, since when, and which account causes it? Enter (or q) shows the "
    "requests, a the accounts, w who did what; {back} comes back here. Cancel what must not go on. "
    "d marks this as done, with what you found.",
    Step.BAN: "Only if an account caused it: Enter asks for an account and a reason. Everything that "
    "the account asks is refused from then on. d marks this as not needed.",
    Step.FIX: "Your own work, outside of this console: settings, a plugin, the batch system, the disk. "
    "Enter marks it as done, with what you did.",
    Step.UNFREEZE: "Enter asks and unfreezes; ctrl+f does so from every screen. Then see on the screen "
    "Requests whether new ones go through.",
    Step.REFUND: "Enter asks for a time window and shows which requests failed in it without a full "
    "refund, and what that would cost; nothing is paid before you have seen and confirmed it. d marks this "
    "as not needed.",
}


def heading(incident: Incident, times: Times) -> str:
    """Whether there is an incident, and since when."""
    began, ended = incident.began, incident.ended
    if began is None:
        return "Frozen: see the audit log for since when." if incident.frozen else "No incident: open."
    if ended is None:
        lasts = duration(times.now() - began.at)
        note = f": {began.details['note']}" if began.details.get("note") else ""
        return f"INCIDENT for {lasts}, frozen since {times.show(began.at)} by {began.actor}{note}"
    return f"Incident from {times.show(began.at)} to {times.show(ended.at)}: open again"


def outcome(step: Step, incident: Incident, mark: Mark | None, times: Times) -> str:
    """What was done in a step, as far as it is known."""
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
