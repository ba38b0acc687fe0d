"""What must be true of the database when ``perf/soak.py`` is over."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from decimal import Decimal

from soak_load import Seen

from collidium import database
from collidium.accounts.models import CreditTransaction
from collidium.simulations.models import SimulationRequest
from collidium.submissions.models import Submission

ENDED = ("completed", "failed", "cancelled")


async def ended(url: str, seconds: float) -> None:
    """Return when all requests have ended, or after that many seconds."""
    async with database.connected(url):
        deadline = time.monotonic() + seconds
        while await SimulationRequest.exclude(state__in=ENDED).exists() and time.monotonic() < deadline:  # noqa: ASYNC110 -- a database
            await asyncio.sleep(0.5)


async def states(url: str) -> Counter[str]:
    """How many requests are in each state."""
    async with database.connected(url):
        return Counter(await SimulationRequest.all().values_list("state", flat=True))


async def problems(url: str, seen: Seen) -> list[str]:
    """What is wrong, a line each."""
    async with database.connected(url):
        rows = await SimulationRequest.all()
        entries = await CreditTransaction.filter(
            reason__in=["simulation_charge", "simulation_refund"]
        ).values_list("reference", "reason", "delta")
        submissions = set(await Submission.all().values_list("id", flat=True))
    booked: dict[str, list[tuple[str, Decimal]]] = defaultdict(list)
    for reference, reason, delta in entries:
        booked[reference].append((reason, delta))
    found = [problem for row in rows for problem in of_request(row, booked[row.request_id])]
    known = {row.request_id for row in rows}
    reported = {str(order.request_id) for order in seen.accepted}
    found += [f"{request_id} was paid for and is no request" for request_id in booked.keys() - known]
    found += [f"{request_id} was answered and is not there" for request_id in reported - known]
    found += [f"{request_id} is there and was answered to no client" for request_id in known - reported]
    found += [f"submission {lost} was answered and is not there" for lost in seen.submissions - submissions]
    return found


def of_request(row: SimulationRequest, booked: list[tuple[str, Decimal]]) -> Iterator[str]:
    """What is wrong with a request and what was booked for it."""
    if row.state not in ENDED:
        yield f"{row.request_id} is {row.state}"
    if row.step or row.due_at or row.lease or row.encrypted_token:
        yield f"{row.request_id} has ended and has a step, a lease or a token"
    expected = [("simulation_charge", -row.credits_charged)]
    if row.credits_refunded:
        expected.append(("simulation_refund", row.credits_refunded))
    if sorted(booked) != sorted(expected):
        yield f"{row.request_id}: {booked} was booked, not {expected}"
    consumed = row.credits_charged - row.credits_refunded
    if consumed != (0 if row.state == "failed" else min(row.node_hours, row.credits_charged)):
        yield f"{row.request_id} is {row.state} and consumed {consumed} of {row.credits_charged}"
