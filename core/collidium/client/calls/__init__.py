"""The server's calls, described once for both clients.

A method describes the request and how its response is read; it does no I/O. The transports send it.
"""

from __future__ import annotations

from collidium.client.calls.admin_submissions import AdminSubmissionCalls
from collidium.client.calls.benchmarks import BenchmarkCalls, Links
from collidium.client.calls.challenges import ChallengeCalls
from collidium.client.calls.datasets import DatasetCalls, EventData
from collidium.client.calls.evaluations import EvaluationCalls
from collidium.client.calls.operators import OperatorCalls
from collidium.client.calls.simulations import AccountCalls, NotificationChanges, SimulationCalls
from collidium.client.calls.teams import TeamCalls

__all__ = ["Calls", "EventData", "Links", "NotificationChanges"]


class Calls(
    AccountCalls,
    SimulationCalls,
    BenchmarkCalls,
    EvaluationCalls,
    DatasetCalls,
    TeamCalls,
    OperatorCalls,
    AdminSubmissionCalls,
    ChallengeCalls,
):
    """All calls of a client.

    Operator actions are performed once per ``idempotency_key``. Without one a key is generated, and the call
    is repeated if the connection breaks.
    """
