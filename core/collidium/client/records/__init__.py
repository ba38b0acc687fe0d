"""What the server answers, as frozen records. Credits are decimals, times are aware datetimes.

Fields that a newer server adds are ignored; one that is missing and has no default is an error.
"""

from collidium.client.records.accounts import Account, Transaction
from collidium.client.records.benchmarks import (
    BestStep,
    Checked,
    Closed,
    EarlierScores,
    EvalEvents,
    Metric,
    Place,
    PredictionColumn,
    Receipt,
    Submission,
    TaskCard,
)
from collidium.client.records.datasets import DatasetEntry, EventData
from collidium.client.records.models import HubModel
from collidium.client.records.operation import (
    AuditEntry,
    Banned,
    ChannelUsage,
    DayUsage,
    Failures,
    Frozen,
    Granted,
    Health,
    Readiness,
    TaskStatus,
    Usage,
    UserUsage,
)
from collidium.client.records.overview import Follower, Overview, SilentTask
from collidium.client.records.pages import Page
from collidium.client.records.refunds import Refund, Refunds
from collidium.client.records.simulations import (
    Estimate,
    Knob,
    Knobs,
    Moment,
    OperatedRequest,
    OutputFile,
    Preset,
    SimulationRequest,
)
from collidium.client.records.webhooks import Webhook, WebhookDelivery, WebhookRemoved

__all__ = [
    "Account",
    "AuditEntry",
    "Banned",
    "BestStep",
    "ChannelUsage",
    "Checked",
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
    "Knob",
    "Knobs",
    "Metric",
    "Moment",
    "OperatedRequest",
    "OutputFile",
    "Overview",
    "Page",
    "Place",
    "PredictionColumn",
    "Preset",
    "Readiness",
    "Receipt",
    "Refund",
    "Refunds",
    "SilentTask",
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
]
