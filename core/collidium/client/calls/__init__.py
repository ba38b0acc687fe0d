"""The server's calls, described once: both clients send these and nothing else.

A function here says what is sent and how the answer is read; it does no I/O. How a call travels is the
transports' business.
"""

from collidium.client.calls.accounts import me, transactions
from collidium.client.calls.benchmarks import check, leaderboard, submission, submit, task, tasks
from collidium.client.calls.call import PARQUET, Call, Credential
from collidium.client.calls.models import models
from collidium.client.calls.operation import (
    admin_account,
    admin_accounts,
    admin_audit,
    admin_ban,
    admin_cancel,
    admin_channels,
    admin_close_phase,
    admin_daily,
    admin_failures,
    admin_freeze,
    admin_grant,
    admin_output,
    admin_overview,
    admin_refunds,
    admin_request,
    admin_requests,
    admin_submissions,
    admin_tasks,
    admin_transactions,
    admin_usage,
    admin_verify,
    health,
    ready,
)
from collidium.client.calls.simulations import cancel, estimate, presets, request, requests, simulate
from collidium.client.calls.webhooks import remove_webhook, set_webhook, webhook, webhook_deliveries

__all__ = [
    "PARQUET",
    "Call",
    "Credential",
    "admin_account",
    "admin_accounts",
    "admin_audit",
    "admin_ban",
    "admin_cancel",
    "admin_channels",
    "admin_close_phase",
    "admin_daily",
    "admin_failures",
    "admin_freeze",
    "admin_grant",
    "admin_output",
    "admin_overview",
    "admin_refunds",
    "admin_request",
    "admin_requests",
    "admin_submissions",
    "admin_tasks",
    "admin_transactions",
    "admin_usage",
    "admin_verify",
    "cancel",
    "check",
    "estimate",
    "health",
    "leaderboard",
    "me",
    "models",
    "presets",
    "ready",
    "remove_webhook",
    "request",
    "requests",
    "set_webhook",
    "simulate",
    "submission",
    "submit",
    "task",
    "tasks",
    "transactions",
    "webhook",
    "webhook_deliveries",
]
