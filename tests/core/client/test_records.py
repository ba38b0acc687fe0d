"""What the client shows and what the server answers have the same fields: neither drifts from the other."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from collidium.api import schemas
from collidium.client import records

#: The answer that each of the client's records is made of; a new record joins here.
ANSWERS: dict[type[Any], type[BaseModel]] = {
    records.Account: schemas.Me,
    records.Transaction: schemas.Transaction,
    records.EvalEvents: schemas.Events,
    records.PredictionColumn: schemas.ColumnModel,
    records.Metric: schemas.MetricModel,
    records.TaskCard: schemas.TaskModel,
    records.Receipt: schemas.Receipt,
    records.Checked: schemas.Checked,
    records.Submission: schemas.SubmissionModel,
    records.EarlierScores: schemas.EarlierScoresModel,
    records.Closed: schemas.Closed,
    records.Place: schemas.Place,
    records.BestStep: schemas.BestStepModel,
    records.HubModel: schemas.HubModelModel,
    records.DatasetEntry: schemas.DatasetModel,
    records.SimulationRequest: schemas.Ordered,
    records.OperatedRequest: schemas.OperatedSimulation,
    records.OutputFile: schemas.OutputModel,
    records.Moment: schemas.MomentModel,
    records.Estimate: schemas.EstimateModel,
    records.Preset: schemas.PresetModel,
    records.Knobs: schemas.KnobsModel,
    records.Knob: schemas.KnobModel,
    records.Usage: schemas.UsageModel,
    records.UserUsage: schemas.UserUsageModel,
    records.ChannelUsage: schemas.ChannelUsageModel,
    records.DayUsage: schemas.DayUsageModel,
    records.Failures: schemas.FailuresModel,
    records.Webhook: schemas.WebhookSet,
    records.WebhookRemoved: schemas.WebhookRemoved,
    records.WebhookDelivery: schemas.DeliveryModel,
    records.Overview: schemas.OverviewModel,
    records.Follower: schemas.FollowerModel,
    records.SilentTask: schemas.SilentTask,
    records.TaskStatus: schemas.TaskStatusModel,
    records.Refunds: schemas.RefundsModel,
    records.Refund: schemas.RefundModel,
    records.Granted: schemas.Granted,
    records.Banned: schemas.Banned,
    records.Frozen: schemas.Frozen,
    records.AuditEntry: schemas.AuditModel,
    records.Health: schemas.Health,
    records.Readiness: schemas.Readiness,
}

#: Fields that a record inherits and its answer has not.
INHERITED = {records.OperatedRequest: {"cached"}}


@pytest.mark.parametrize("record", ANSWERS, ids=lambda record: record.__name__)
def test_a_record_has_the_fields_of_its_answer(record: type[Any]) -> None:
    own = {field.name for field in fields(record)} - INHERITED.get(record, set())
    assert own == set(ANSWERS[record].model_fields)


def test_every_record_has_its_answer() -> None:
    own = {thing for thing in vars(records).values() if isinstance(thing, type) and is_dataclass(thing)}
    # A page is the client's own: its items are the answer, its cursor is in a header. An event is no JSON.
    assert own - {records.Page, records.EventData} == set(ANSWERS)
