"""Models that the platform runs: how far they are, and what was measured."""

from __future__ import annotations

from decimal import Decimal
from math import hypot
from typing import Annotated, Final, Literal, get_args

from msgspec import Meta

from collidium.records.base import Credits, Record, Time
from collidium.records.tasks import EvalEvents

#: What becomes of a submitted model, in this order; the last three are ends.
EvaluationState = Literal["received", "checking", "running", "scored", "failed", "cancelled"]


class ModelGraph(Record, frozen=True):
    """What a model computes with, reads and returns, by its file and its manifest."""

    operators: Annotated[dict[str, int], Meta(description="How often each is there.")]
    inputs: Annotated[dict[str, str], Meta(description="Input -> source, type and layout.")]
    outputs: Annotated[dict[str, str], Meta(description="Output -> columns of predictions.")]
    batch: str
    license: Annotated[str, Meta(description="As the manifest names it; empty where it does not.")] = ""


class EvaluatedModel(Record, frozen=True):
    """A model that the platform has run: its file, its size and its speed."""

    sha256: str
    file_bytes: int
    n_params: Annotated[int, Meta(description="Numbers in the file, or a quarter of their bytes if more.")]
    nodes: int
    opset: int
    manifest_sha256: str = ""
    runtime: Annotated[str, Meta(description="What ran it, with its version.")] = ""
    seconds: Annotated[
        float | None, Meta(description="CPU seconds of an event on the nominal machine; null: not measured.")
    ] = None
    seconds_error: float | None = None
    wall_seconds: Annotated[
        float | None, Meta(description="Of an event on the machine that measured; null: not measured.")
    ] = None
    memory_bytes: Annotated[int | None, Meta(description="The most that its process has held.")] = None
    joules: Annotated[
        float | None,
        Meta(description="Of an event, with all else that the machine did; null: it reports no energy."),
    ] = None
    graph: Annotated[ModelGraph | None, Meta(description="null in lists.")] = None


ModelThatRan = Annotated[
    EvaluatedModel | None,
    Meta(description="The model that the platform ran; null: predictions were sent."),
]


class Evaluation(Record, frozen=True):
    """A model that the platform runs on the events of a challenge."""

    evaluation_id: str
    challenge: str
    task: str
    hub_username: str
    state: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(EvaluationState))})]
    received_at: Time
    model_sha256: str
    model_bytes: int
    events: int
    events_done: Annotated[int, Meta(description="In tenths of all, while it runs.")] = 0
    code: Annotated[str | None, Meta(description="Why it failed.")] = None
    reason: Annotated[str | None, Meta(description="The same as text.")] = None
    checking_at: Time | None = None
    running_at: Time | None = None
    ended_at: Time | None = None
    n_params: int | None = None
    submission_id: Annotated[str | None, Meta(description="What became of it, when it is scored.")] = None
    again: Annotated[
        bool,
        Meta(description="Whether it runs that submission's model on other events: final, new or public."),
    ] = False
    public: Annotated[bool, Meta(description="Whether these are public, and never count.")] = False
    truth_version: str = ""
    price: Annotated[Credits, Meta(description="Credits that were charged for it.")] = Decimal(0)
    machine: Annotated[
        str | None, Meta(description="Where it runs or ran last; null for all but operators.")
    ] = None
    model_repo: str | None = None
    deduplicated: Annotated[
        bool, Meta(description="In the answer to a submission: whether the same model was sent before.")
    ] = False

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.state in ("scored", "failed", "cancelled")


#: Results agree that are so many standard errors apart at most, or equal where they have none.
AGREE: Final = 3


class Reproduced(Record, frozen=True):
    """A result of a model on the events that count, and on others."""

    name: str
    value: float
    uncertainty: float | None
    again: float
    again_uncertainty: float | None

    @property
    def agrees(self) -> bool:
        """Whether both are within three standard errors."""
        error = hypot(self.uncertainty or 0, self.again_uncertainty or 0)
        return abs(self.value - self.again) <= AGREE * error


class Reproduction(Record, frozen=True):
    """A model of a submission, run again on public events; `results` when it is scored."""

    evaluation_id: str
    state: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(EvaluationState))})]
    received_at: Time
    truth_version: str
    dataset: str
    eval_events: EvalEvents
    results: tuple[Reproduced, ...] = ()
    agrees: Annotated[
        bool | None, Meta(description="Whether all are within three standard errors; null: not scored.")
    ] = None
