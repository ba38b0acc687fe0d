"""The shapes of requests and answers, as the OpenAPI document shows them."""

from collidium.api.schemas.accounts import Me, Transaction
from collidium.api.schemas.admin import AuditModel, BanBody, Banned, FreezeQuery, Frozen, GrantBody, Granted
from collidium.api.schemas.base import Amount, Answer, Body, Credits, HubUsername, Text
from collidium.api.schemas.benchmarks import (
    Checked,
    ColumnModel,
    Events,
    MetricModel,
    Place,
    Receipt,
    SubmissionModel,
    SubmitQuery,
    TaskModel,
)
from collidium.api.schemas.health import Health, Readiness
from collidium.api.schemas.problems import FieldProblem, Problem

__all__ = [
    "Amount",
    "Answer",
    "AuditModel",
    "BanBody",
    "Banned",
    "Body",
    "Checked",
    "ColumnModel",
    "Credits",
    "Events",
    "FieldProblem",
    "FreezeQuery",
    "Frozen",
    "GrantBody",
    "Granted",
    "Health",
    "HubUsername",
    "Me",
    "MetricModel",
    "Place",
    "Problem",
    "Readiness",
    "Receipt",
    "SubmissionModel",
    "SubmitQuery",
    "TaskModel",
    "Text",
    "Transaction",
]
