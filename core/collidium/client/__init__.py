"""The client library: everything a user or an operator's tool asks of a Collidium server.

::

    from collidium.client import Client

    with Client() as client:
        answer = client.submit("tracking", "predictions.parquet")
        print(answer.scores, answer.credits_earned)
        ordered = client.simulate(preset="ttbar-quick")
        print(client.wait(ordered.request_id).output_hub_repo)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidium.client.asynchronous import AsyncClient
from collidium.client.blocking import Client
from collidium.client.records import (
    Account,
    AuditEntry,
    Banned,
    ChannelUsage,
    Checked,
    DayUsage,
    Estimate,
    EvalEvents,
    Failures,
    Frozen,
    Granted,
    Health,
    Metric,
    Moment,
    Page,
    Place,
    PredictionColumn,
    Preset,
    Readiness,
    Receipt,
    SimulationRequest,
    Submission,
    TaskCard,
    Transaction,
    Usage,
    UserUsage,
    Webhook,
    WebhookDelivery,
    WebhookRemoved,
)
from collidium.saved_login import forget_token, login_file, save_token

if TYPE_CHECKING:
    from collidium.client.predictions import write_predictions

__all__ = [
    "Account",
    "AsyncClient",
    "AuditEntry",
    "Banned",
    "ChannelUsage",
    "Checked",
    "Client",
    "DayUsage",
    "Estimate",
    "EvalEvents",
    "Failures",
    "Frozen",
    "Granted",
    "Health",
    "Metric",
    "Moment",
    "Page",
    "Place",
    "PredictionColumn",
    "Preset",
    "Readiness",
    "Receipt",
    "SimulationRequest",
    "Submission",
    "TaskCard",
    "Transaction",
    "Usage",
    "UserUsage",
    "Webhook",
    "WebhookDelivery",
    "WebhookRemoved",
    "forget_token",
    "login_file",
    "save_token",
    "write_predictions",
]


def __getattr__(name: str) -> object:
    # It needs pyarrow, which most callers do not.
    if name == "write_predictions":
        from collidium.client.predictions import write_predictions

        return write_predictions
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
