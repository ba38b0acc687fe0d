"""The client library: everything a user or an operator's tool asks of a Collidium server.

::

    from collidium.client import Client

    with Client() as client:
        answer = client.submit("tracking", "predictions.parquet")
        print(answer.scores, answer.credits_earned)
        ordered = client.simulate(preset="ttbar-quick")
        print(client.wait(ordered.request_id).output_hub_repo)

``simulate`` alone makes events on this machine, without a server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from collidium.client.asynchronous import AsyncClient
from collidium.client.blocking import Client
from collidium.client.calls import EventData
from collidium.client.connection import version_mismatch
from collidium.hub.saved_login import forget_token, login_file, save_token
from collidium.records import (
    Account,
    AuditEntry,
    Banned,
    BestStep,
    ChannelUsage,
    Checked,
    Closed,
    DatasetEntry,
    DayUsage,
    EarlierScores,
    Estimate,
    EvalEvents,
    Failures,
    Follower,
    Frozen,
    Granted,
    Health,
    HubModel,
    Metric,
    Moment,
    OperatedRequest,
    OrderLimits,
    OutputFile,
    Overview,
    Page,
    Place,
    PredictionColumn,
    Preset,
    Range,
    Readiness,
    Receipt,
    Refund,
    Refunds,
    SilentTask,
    SimulationRequest,
    Submission,
    TaskCard,
    TaskStatus,
    Transaction,
    Usage,
    UserUsage,
    Webhook,
    WebhookDelivery,
    WebhookRemoved,
)

if TYPE_CHECKING:
    from collidium.client.local_simulation import Simulated, simulate
    from collidium.client.predictions import write_predictions

__all__ = [
    "Account",
    "AsyncClient",
    "AuditEntry",
    "Banned",
    "BestStep",
    "ChannelUsage",
    "Checked",
    "Client",
    "Closed",
    "DatasetEntry",
    "DayUsage",
    "EarlierScores",
    "Estimate",
    "EvalEvents",
    "EventData",
    "Failures",
    "Follower",
    "Frozen",
    "Granted",
    "Health",
    "HubModel",
    "Metric",
    "Moment",
    "OperatedRequest",
    "OrderLimits",
    "OutputFile",
    "Overview",
    "Page",
    "Place",
    "PredictionColumn",
    "Preset",
    "Range",
    "Readiness",
    "Receipt",
    "Refund",
    "Refunds",
    "SilentTask",
    "Simulated",
    "SimulationRequest",
    "Submission",
    "TaskCard",
    "TaskStatus",
    "Transaction",
    "Usage",
    "UserUsage",
    "Webhook",
    "WebhookDelivery",
    "WebhookRemoved",
    "forget_token",
    "login_file",
    "save_token",
    "simulate",
    "version_mismatch",
    "write_predictions",
]


#: Where to find what needs pyarrow, which most callers do not.
_ON_DEMAND: Final = {
    "Simulated": "local_simulation",
    "simulate": "local_simulation",
    "write_predictions": "predictions",
}


def __getattr__(name: str) -> object:
    if name in _ON_DEMAND:
        return getattr(import_module(f"{__name__}.{_ON_DEMAND[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
