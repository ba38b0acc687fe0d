"""The shapes of requests, all problems of which are reported at once; answers are records."""

from collidium.api.schemas.admin import (
    AccountsQuery,
    BanBody,
    DaysQuery,
    FreezeQuery,
    GrantBody,
    MonthQuery,
    RefundsBody,
    SubmissionsQuery,
    UsageQuery,
)
from collidium.api.schemas.base import (
    Amount,
    Body,
    FieldProblem,
    HubUsername,
    IdempotencyHeaders,
    Problem,
    Text,
)
from collidium.api.schemas.benchmarks import (
    HistoryQuery,
    LeaderboardQuery,
    LinksBody,
    MySubmissionsQuery,
    SubmitQuery,
)
from collidium.api.schemas.datasets import DatasetsQuery, EventQuery, ModelsQuery
from collidium.api.schemas.simulations import (
    AllRequestsQuery,
    ChannelBody,
    EstimateQuery,
    PresetBody,
    RequestsQuery,
    SimulateBody,
    WebhookBody,
)

__all__ = [
    "AccountsQuery",
    "AllRequestsQuery",
    "Amount",
    "BanBody",
    "Body",
    "ChannelBody",
    "DatasetsQuery",
    "DaysQuery",
    "EstimateQuery",
    "EventQuery",
    "FieldProblem",
    "FreezeQuery",
    "GrantBody",
    "HistoryQuery",
    "HubUsername",
    "IdempotencyHeaders",
    "LeaderboardQuery",
    "LinksBody",
    "ModelsQuery",
    "MonthQuery",
    "MySubmissionsQuery",
    "PresetBody",
    "Problem",
    "RefundsBody",
    "RequestsQuery",
    "SimulateBody",
    "SubmissionsQuery",
    "SubmitQuery",
    "Text",
    "UsageQuery",
    "WebhookBody",
]
