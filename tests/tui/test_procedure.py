"""What the audit log and an operator's word say of the steps of an incident."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from collidium.client import AuditEntry
from collidium_tui.screens.incident.procedure import Incident, Mark, Step

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def log(*actions: str, end: datetime = NOW) -> list[AuditEntry]:
    """A log, newest first, of actions like ``ban eve``, given oldest first, a minute apart."""
    entries = []
    for number, entry in enumerate(actions):
        action, _, target = entry.partition(" ")
        at = end - timedelta(minutes=len(actions) - number)
        entries.append(AuditEntry(number, at, "root", action, target))
    return entries[::-1]


def read(*actions: str, frozen: bool = False) -> Incident:
    return Incident.from_log(log(*actions), frozen, NOW)


def open_steps(incident: Incident, *marked: Step) -> list[Step]:
    marks = {step: Mark(NOW) for step in marked}
    return [step for step in Step if not incident.done(step, marks)]


def test_without_a_freeze_there_is_no_incident() -> None:
    for actions in ((), ("ban eve", "grant ada"), ("unfreeze", "ban eve")):
        incident = read(*actions)
        assert incident == Incident()
        assert incident.next_step({}) is Step.FREEZE


def test_a_freeze_begins_one_and_its_end_leaves_the_refunds() -> None:
    incident = read("ban old", "freeze", "ban eve")
    assert incident.frozen
    assert incident.banned == ["eve"], "who was banned before has nothing to do with it"
    assert open_steps(incident) == [Step.INVESTIGATE, Step.FIX, Step.UNFREEZE, Step.REFUND]
    incident = read("ban old", "freeze", "ban eve", "unfreeze")
    assert not incident.frozen
    assert incident.began is not None
    assert incident.ended is not None
    assert incident.began.at < incident.ended.at
    assert open_steps(incident, Step.INVESTIGATE, Step.FIX) == [Step.REFUND]
    incident = read("ban old", "freeze", "ban eve", "unfreeze", "refund window")
    assert incident.next_step({Step.INVESTIGATE: Mark(NOW), Step.FIX: Mark(NOW)}) is None


def test_repeating_a_freeze_or_an_unfreeze_changes_nothing() -> None:
    incident = read("freeze", "ban eve", "freeze", "ban mallory", "unfreeze", "grant ada", "unfreeze")
    assert incident.banned == ["eve", "mallory"]
    assert incident.began is not None
    assert incident.ended is not None
    assert (incident.began.id, incident.ended.id) == (0, 4)


def test_the_last_incident_counts() -> None:
    incident = read("freeze", "ban eve", "unfreeze", "refund window", "freeze", "ban mallory")
    assert incident.frozen
    assert incident.banned == ["mallory"]
    assert not incident.refunds


def test_an_unbanned_account_is_not_banned() -> None:
    assert read("freeze", "ban eve", "ban mallory", "unban eve").banned == ["mallory"]
    assert Step.BAN in open_steps(read("freeze", "ban eve", "unban eve"))


@pytest.mark.parametrize(("days", "remembered"), [(0.9, True), (1.1, False)])
def test_an_incident_is_hidden_a_day_after_its_end(days: float, remembered: bool) -> None:
    entries = log("freeze", "unfreeze", end=NOW - timedelta(days=days))
    assert (Incident.from_log(entries, False, NOW).began is not None) is remembered


def test_a_freeze_older_than_the_log_is_still_an_incident() -> None:
    incident = read("ban eve", "grant ada", frozen=True)
    assert incident.frozen
    assert incident.began is None
    assert incident.done(Step.FREEZE, {})
