"""Benchmark tasks, and datasets and models on the hub."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, field

from collidium.records.base import Credits, Record, Time

#: The part of the events that counts now.
Phase = Annotated[
    Annotated[str, Meta(extra_json_schema={"enum": ["public", "final"]})] | None,
    Meta(description="Part of the events that counts now; null: all."),
]

PublicPercent = Annotated[int | None, Meta(description="Percentage of public events; null: not split.")]


class EvalEvents(Record, frozen=True):
    """The half-open range of events that are scored: ``start <= event_id < stop``."""

    start: int
    stop: int


class TaskData(Record, frozen=True):
    """Public events of a task: part of a dataset at one commit."""

    repository: str
    revision: Annotated[str, Meta(description="A commit, 40 hexadecimal digits.")]
    config: str
    tables: tuple[str, ...]
    events: EvalEvents
    bytes: Annotated[int, Meta(description="Size of the shards with these events.")]
    hub: Annotated[
        str | None, Meta(description="Address of the hub; null: the server's local hub, at `/hub`.")
    ] = None
    download: Annotated[str, Meta(description="The command that fetches them.")] = ""


class PredictionColumn(Record, frozen=True):
    """A required column of predictions."""

    name: str
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["integer", "float"]})]
    description: str
    bounds: Annotated[
        tuple[int | float | None, int | float | None],
        Meta(description="Minimum and maximum accepted value; null: unlimited."),
    ] = (None, None)
    one_per: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": ["event", "file"]})] | None,
        Meta(description="All rows of an event or of the file must have the same value; null: no such rule."),
    ] = None


class Metric(Record, frozen=True):
    """A metric of a task; ``reward`` is earned by a new best, ``floor`` must be exceeded by the first.

    A self-reported metric is measured by the submitter, and earns nothing until an operator has verified it.
    """

    name: str
    higher_is_better: bool
    description: str
    reward: Credits | None = None
    floor: float | None = None
    self_reported: bool = False
    missing_when: Annotated[str, Meta(description="When a submission has no such score; empty: never.")] = ""
    formula: Annotated[str, Meta(description="How it is computed, in plain text; may be empty.")] = ""
    source: Annotated[str, Meta(description="The publication that defines it; empty if the task does.")] = ""
    title: Annotated[str, Meta(description="Short display name; may be empty.")] = ""


class TaskCard(Record, frozen=True):
    """A benchmark task."""

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
    reason: Annotated[str | None, Meta(description="Why it accepts no submissions; null: it does.")] = None
    truth_version: str | None = None
    phase: Phase = None
    public_percent: PublicPercent = None
    left_out: Annotated[str, Meta(description="How missing rows are scored; may be empty.")] = ""
    pareto: Annotated[
        tuple[str, str] | None,
        Meta(description="Two competing metrics, whose Pareto front the leaderboard marks."),
    ] = None
    ranks_measured: Annotated[
        bool,
        Meta(description="Whether only models that the platform has run and measured are ranked."),
    ] = False
    largest_file_bytes: Annotated[
        int | None,
        Meta(description="Maximum size of predictions; null: no truth yet."),
    ] = None
    largest_model_bytes: Annotated[
        int | None, Meta(description="Maximum size of a model; null: the server runs none.")
    ] = None
    model_price: Annotated[Credits, Meta(description="Credits for running a model.")] = Decimal(0)
    truth_notes: Annotated[
        Mapping[str, str],
        Meta(description="How the truth was made, for example weights of hits; may be empty."),
    ] = field(default_factory=dict)
    practice: Annotated[
        str | None, Meta(description="Why it is for practice; null: its truth is held by the server.")
    ] = None
    training_data: Annotated[
        TaskData | None, Meta(description="Training events with truth; null: none given.")
    ] = None
    evaluation_data: Annotated[
        TaskData | None, Meta(description="Inputs of the scored events; null: none given.")
    ] = None


class TaskStatus(Record, frozen=True):
    """A task that is installed or listed; ``reason`` is why it accepts no submissions."""

    name: str
    title: str
    installed: bool
    listed: bool
    distribution: str | None = None
    scorer_version: str | None = None
    truth_version: str | None = None
    phase: Phase = None
    public_percent: PublicPercent = None
    reason: str | None = None


class DatasetEntry(Record, frozen=True):
    """A config of a dataset; null: unknown from its files."""

    repo: Annotated[str, Meta(description="`namespace/name` on the hub; `sample`: the built-in one.")]
    config: str
    revision: Annotated[str, Meta(description="Commit of the repository; `local` for the sample.")]
    tables: tuple[str, ...]
    bytes: int
    events: int | None = None
    first_event: int | None = None
    last_event: int | None = None
    updated_at: Time | None = None
    sample: bool = False
    license: str | None = None
    source: str | None = None


class RepoCard(Record, frozen=True):
    """The card and the files of a public repository on the hub, written by its owners."""

    repo: str
    revision: Annotated[str, Meta(description="Commit of the repository.")]
    url: Annotated[str, Meta(description="Its page on the hub.")]
    text: Annotated[str, Meta(description="Its card in Markdown, with the front matter.")] = ""
    license: str | None = None
    files: Annotated[tuple[str, ...], Meta(description="The first of its files.")] = ()
    more_files: int = 0


class HubModel(Record, frozen=True):
    """A model on the hub, described by its owners; null: not given."""

    model_repo: Annotated[str, Meta(description="`namespace/name` on the hub.")]
    author: str
    url: Annotated[str, Meta(description="Its page on the hub.")]
    tags: Annotated[tuple[str, ...], Meta(description="Tags on the hub, except those of the platform.")] = ()
    tasks: Annotated[tuple[str, ...], Meta(description="Benchmark tasks named by its owners.")] = ()
    updated_at: Time | None = None
    description: str | None = None
    library: str | None = None
    likes: int | None = None
    downloads: int | None = None
