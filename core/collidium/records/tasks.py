"""Benchmark tasks: what is scored, on which events, by which metrics; and datasets that may be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, field

from collidium.records.base import Credits, Record, Time

#: Which events count now.
Phase = Annotated[
    Annotated[str, Meta(extra_json_schema={"enum": ["public", "final"]})] | None,
    Meta(description="Part of the events that counts now; null: all."),
]

PublicPercent = Annotated[
    int | None, Meta(description="How much of the events is public, where they are split.")
]


class EvalEvents(Record, frozen=True):
    """The half-open range of events that are scored: ``start <= event_id < stop``."""

    start: int
    stop: int


class TaskData(Record, frozen=True):
    """Events of a task that anyone may fetch: some of a dataset, at one commit."""

    repository: str
    revision: Annotated[str, Meta(description="A commit, 40 hexadecimal digits.")]
    config: str
    tables: tuple[str, ...]
    events: EvalEvents
    bytes: Annotated[int, Meta(description="Of the shards that hold these events.")]
    hub: Annotated[
        str | None, Meta(description="Address of the hub; null: the server's local hub, at `/hub`.")
    ] = None
    download: Annotated[str, Meta(description="The command that fetches them.")] = ""


class PredictionColumn(Record, frozen=True):
    """A column that predictions must have."""

    name: str
    kind: Annotated[str, Meta(extra_json_schema={"enum": ["integer", "float"]})]
    description: str
    bounds: Annotated[
        tuple[int | float | None, int | float | None],
        Meta(description="The lowest and the highest value that is accepted; null: there is none."),
    ] = (None, None)
    one_per: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": ["event", "file"]})] | None,
        Meta(
            description="All rows of an event, or of the file, must have the same value; null: they need not."
        ),
    ] = None


class Metric(Record, frozen=True):
    """A metric of a task; ``reward`` is what a new best earns, ``floor`` what a first best must beat.

    What is self-reported was measured by the submitter, and earns nothing until an operator has verified it.
    """

    name: str
    higher_is_better: bool
    description: str
    reward: Credits | None = None
    floor: float | None = None
    self_reported: bool = False
    missing_when: Annotated[
        str, Meta(description="When a submission has no such score; empty: it always has one.")
    ] = ""
    formula: Annotated[str, Meta(description="How it is computed, in plain text; may be empty.")] = ""
    source: Annotated[
        str, Meta(description="The publication that defines it; empty where the task does.")
    ] = ""
    title: Annotated[str, Meta(description="Its name in a few words; may be empty.")] = ""


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
    truth_version: str | None = None
    phase: Phase = None
    public_percent: PublicPercent = None
    left_out: Annotated[
        str, Meta(description="What becomes of rows that are not submitted; may be empty.")
    ] = ""
    pareto: Annotated[
        tuple[str, str] | None,
        Meta(
            description="Two metrics that are traded for each other: the leaderboard marks their Pareto "
            "front."
        ),
    ] = None
    ranks_measured: Annotated[
        bool,
        Meta(description="Whether only models are ranked that the platform has run and measured."),
    ] = False
    largest_file_bytes: Annotated[
        int | None,
        Meta(description="Bytes that a file of predictions may have; null while there is no truth."),
    ] = None
    largest_model_bytes: Annotated[
        int | None, Meta(description="Bytes that a model may have; null: the server runs none.")
    ] = None
    model_price: Annotated[Credits, Meta(description="Credits for running a model.")] = Decimal(0)
    truth_notes: Annotated[
        Mapping[str, str], Meta(description="How the truth was made, such as what hits weigh; may be empty.")
    ] = field(default_factory=dict)
    training_data: Annotated[
        TaskData | None, Meta(description="Events with truth to learn from; null: the operators name none.")
    ] = None
    evaluation_data: Annotated[
        TaskData | None, Meta(description="Inputs of the scored events; null: the operators name none.")
    ] = None


class TaskStatus(Record, frozen=True):
    """A task that is installed, or listed, or both; ``reason`` is why it accepts no submissions."""

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

    repo: Annotated[
        str, Meta(description="`namespace/name` on the hub; `sample`: it comes with the platform.")
    ]
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
    """The card and the files of a public repository on the hub, as its owners wrote them."""

    repo: str
    revision: Annotated[str, Meta(description="Commit of the repository.")]
    url: Annotated[str, Meta(description="Its page on the hub.")]
    text: Annotated[str, Meta(description="Its card in Markdown, with the front matter.")] = ""
    license: str | None = None
    files: Annotated[tuple[str, ...], Meta(description="The first of its files.")] = ()
    more_files: int = 0


class HubModel(Record, frozen=True):
    """A model on the hub, as its owners describe it; null: not given."""

    model_repo: Annotated[str, Meta(description="`namespace/name` on the hub.")]
    author: str
    url: Annotated[str, Meta(description="Its page on the hub.")]
    tags: Annotated[
        tuple[str, ...], Meta(description="Its tags on the hub, without those of the platform.")
    ] = ()
    tasks: Annotated[tuple[str, ...], Meta(description="Benchmark tasks that its owners name.")] = ()
    updated_at: Time | None = None
    description: str | None = None
    library: str | None = None
    likes: int | None = None
    downloads: int | None = None
