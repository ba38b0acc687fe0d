"""What the server answers, as frozen records. Credits are decimals, times are aware datetimes.

Fields that a newer server adds are ignored; one that is missing and has no default is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list; ``cursor=page.next_cursor`` asks for the next one, None means there is none."""

    items: tuple[Item, ...]
    next_cursor: str | None = None

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Item:
        return self.items[index]


# -- accounts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Account:
    """The caller's account."""

    hub_username: str
    credits: Decimal
    banned: bool
    created_at: datetime
    last_seen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Transaction:
    """A ledger entry."""

    id: int | str
    delta: Decimal
    reason: str
    balance_after: Decimal
    created_at: datetime
    note: str | None = None
    reference: str | None = None


# -- benchmarks -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class EvalEvents:
    """The half-open range of events that are scored: ``start <= event_id < stop``."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class PredictionColumn:
    """A column that predictions must have; ``kind`` is ``integer`` or ``float``."""

    name: str
    kind: str
    description: str


@dataclass(frozen=True, slots=True)
class Metric:
    """A number by which submissions are told apart, and what a new best of it earns."""

    name: str
    higher_is_better: bool
    description: str
    reward: Decimal | None = None
    floor: float | None = None


@dataclass(frozen=True, slots=True)
class TaskCard:
    """What a benchmark task asks for."""

    name: str
    title: str
    description: str
    dataset: str
    eval_events: EvalEvents
    inputs: tuple[str, ...]
    columns: tuple[PredictionColumn, ...]
    metrics: tuple[Metric, ...]
    primary_metric: str
    scorer_version: str
    accepts_submissions: bool
    truth_version: str | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """The answer to predictions that were submitted."""

    submission_id: str
    scores: Mapping[str, float]
    credits_earned: Decimal
    deduplicated: bool
    warnings: tuple[str, ...] = ()
    rows: int | None = None
    sha256: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """The answer to predictions that were only checked; problems raise InvalidInput instead."""

    valid: bool
    rows: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission as it is kept."""

    submission_id: str
    task: str
    hub_username: str
    submitted_at: datetime
    scores: Mapping[str, float | None]
    credits_earned: Decimal
    model_repo: str | None = None
    rows: int | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a leaderboard."""

    rank: int
    submission_id: str
    hub_username: str
    submitted_at: datetime
    scores: Mapping[str, float | None]
    credits_earned: Decimal
    model_repo: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None


# -- operation --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Granted:
    """The answer to a grant."""

    hub_username: str
    new_balance: Decimal
    transaction_id: int | str


@dataclass(frozen=True, slots=True)
class Banned:
    """The answer to a ban or its end."""

    hub_username: str
    banned: bool


@dataclass(frozen=True, slots=True)
class Frozen:
    """The answer to a freeze or its end."""

    submissions_frozen: bool


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Something an operator did: who, what, to whom."""

    id: int | str
    at: datetime
    actor: str
    action: str
    target: str
    details: Mapping[str, Any] = field(default_factory=dict)
    http_request_id: str | None = None


@dataclass(frozen=True, slots=True)
class Health:
    """The server runs."""

    status: str
    version: str


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether the server can do its work (``status`` is ``ready`` or ``not ready``), and what is amiss."""

    status: str
    database: str
    submissions_frozen: bool | None = None
    plugins_failed: tuple[str, ...] = ()
