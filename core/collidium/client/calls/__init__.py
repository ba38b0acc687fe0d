"""The server's calls, described once: both clients send these and nothing else.

A method here describes what is sent and how the response is read; it does no I/O. The transports send it.
"""

from __future__ import annotations

from collidium.client.calls.benchmarks import BenchmarkCalls, Links
from collidium.client.calls.challenges import ChallengeCalls
from collidium.client.calls.datasets import DatasetCalls, EventData
from collidium.client.calls.operators import OperatorCalls
from collidium.client.calls.simulations import AccountCalls, NotificationChanges, SimulationCalls
from collidium.client.calls.teams import TeamCalls

__all__ = ["Calls", "EventData", "Links", "NotificationChanges"]


class Calls(
    AccountCalls, SimulationCalls, BenchmarkCalls, DatasetCalls, TeamCalls, OperatorCalls, ChallengeCalls
):
    """All calls of a client.

    Each action of operators is done once for its ``idempotency_key``. Without one it gets a key of its own,
    and is sent again when the connection breaks.
    """
