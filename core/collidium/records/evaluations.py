"""Models that the platform runs: their evaluations, and measured properties."""

from __future__ import annotations

from decimal import Decimal
from math import hypot
from typing import Annotated, Final, Literal, get_args

from msgspec import Meta

from collidium.records.base import Credits, Record, Time
from collidium.records.tasks import EvalEvents

#: States of an evaluation in order; the last three are terminal.
EvaluationState = Literal["received", "checking", "running", "scored", "failed", "cancelled"]


class ModelGraph(Record, frozen=True):
    """Operators, inputs and outputs of a model, from its file and manifest."""

    operators: Annotated[dict[str, int], Meta(description="Number of nodes by operator.")]
    inputs: Annotated[dict[str, str], Meta(description="Input -> source, type and layout.")]
    outputs: Annotated[dict[str, str], Meta(description="Output -> columns of predictions.")]
    batch: str
    license: Annotated[str, Meta(description="License in the manifest; may be empty.")] = ""


class EvaluatedModel(Record, frozen=True):
    """A model that the platform has run: file, size and speed."""

    sha256: str
    file_bytes: int
    n_params: Annotated[
        int, Meta(description="Numbers in the file, or a quarter of their bytes if that is more.")
    ]
    nodes: int
    opset: int
    manifest_sha256: str = ""
    runtime: Annotated[str, Meta(description="Inference runtime and its version.")] = ""
    seconds: Annotated[
        float | None, Meta(description="CPU seconds per event on the nominal machine; null: not measured.")
    ] = None
    seconds_error: float | None = None
    wall_seconds: Annotated[
        float | None, Meta(description="Per event on the measuring machine; null: not measured.")
    ] = None
    memory_bytes: Annotated[int | None, Meta(description="Peak memory of its process.")] = None
    joules: Annotated[
        float | None,
        Meta(description="Energy of the machine per event; null: not measured."),
    ] = None
    graph: Annotated[ModelGraph | None, Meta(description="null in lists.")] = None


ModelThatRan = Annotated[
    EvaluatedModel | None,
    Meta(description="The model that the platform ran; null for submitted predictions."),
]


class Evaluation(Record, frozen=True):
    """The evaluation of a model on the events of a challenge."""

    evaluation_id: str
    challenge: str
    task: str
    hub_username: str
    state: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(EvaluationState))})]
    received_at: Time
    model_sha256: str
    model_bytes: int
    events: int
    events_done: Annotated[int, Meta(description="In steps of a tenth while it runs.")] = 0
    code: Annotated[str | None, Meta(description="Error code.")] = None
    reason: Annotated[str | None, Meta(description="Error message.")] = None
    checking_at: Time | None = None
    running_at: Time | None = None
    ended_at: Time | None = None
    n_params: int | None = None
    submission_id: Annotated[str | None, Meta(description="The resulting submission.")] = None
    again: Annotated[
        bool,
        Meta(
            description="Whether it runs that submission's model again on other events: final, new or public."
        ),
    ] = False
    public: Annotated[bool, Meta(description="Whether these events are public; the scores never count.")] = (
        False
    )
    truth_version: str = ""
    price: Annotated[Credits, Meta(description="Credits charged.")] = Decimal(0)
    machine: Annotated[str | None, Meta(description="Machine that runs or ran it; for operators only.")] = (
        None
    )
    model_repo: str | None = None
    deduplicated: Annotated[
        bool, Meta(description="In the response to a submission: whether the same model was sent before.")
    ] = False

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self.state in ("scored", "failed", "cancelled")


#: Maximum difference of results that agree, in standard errors.
AGREE: Final = 3


class Reproduced(Record, frozen=True):
    """A result of a model on the events that count, and on public ones."""

    name: str
    value: float
    uncertainty: float | None
    again: float
    again_uncertainty: float | None

    @property
    def agrees(self) -> bool:
        """Whether both agree within three standard errors."""
        error = hypot(self.uncertainty or 0, self.again_uncertainty or 0)
        return abs(self.value - self.again) <= AGREE * error


class Reproduction(Record, frozen=True):
    """A repeated run of a submission's model on public events; `results` are set when it is scored."""

    evaluation_id: str
    state: Annotated[str, Meta(extra_json_schema={"enum": list(get_args(EvaluationState))})]
    received_at: Time
    truth_version: str
    dataset: str
    eval_events: EvalEvents
    results: tuple[Reproduced, ...] = ()
    agrees: Annotated[
        bool | None, Meta(description="Whether all agree within three standard errors; null: not scored.")
    ] = None
