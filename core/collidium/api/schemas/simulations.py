"""Shapes of simulation requests: what is ordered, and what became of it."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field, RootModel

from collidium.api.answers import Page
from collidium.api.schemas.base import Answer, Credits
from collidium.order import DEFAULT_SEED, LARGEST_SEED
from collidium.simulations import State, Step


class OrderBody(BaseModel):
    """How an order is to be made and delivered, whatever is ordered."""

    #: Limits are the domain's to check: all that is wrong is told at once, in its words.
    model_config = ConfigDict(extra="forbid", strict=True)

    seed: int = Field(
        DEFAULT_SEED,
        description="The same config with the same seed gives the same events.",
        json_schema_extra={"minimum": 0, "maximum": LARGEST_SEED},
    )
    private: bool = Field(False, description="Whether the output's repository is to be private.")
    webhook_url: str | None = Field(None, description="Where to tell of the end; https:// only.")


class KnobsBody(OrderBody):
    """An order by its three knobs."""

    channel: str = Field(description="Physics process.")
    events: int = Field(description="Number of hard-scatter events.", json_schema_extra={"minimum": 1})
    pileup: int = Field(
        description="Average soft interactions overlaid per event.", json_schema_extra={"minimum": 0}
    )


class PresetBody(OrderBody):
    """An order by the name of a preset."""

    preset: str = Field(description="One of GET /v1/presets.")


class SimulateBody(RootModel[KnobsBody | PresetBody]):
    """An order of simulated events."""


class MomentModel(Answer):
    """A line of a request's timeline: a state it came to, or what is worth telling on the way."""

    at: datetime
    state: State
    reason: str | None


class SimulationSummary(Answer):
    """A simulation request, without its timeline.

    `node_hours` are estimated until the request has ended; `reason` is why it is as it is.
    """

    request_id: str
    hub_username: str
    channel: str
    events: int
    pileup: int
    seed: int
    pipeline_version: str
    private: bool
    state: State
    reason: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    credits_charged: Credits
    credits_refunded: Credits
    estimated_node_hours: Credits
    node_hours: Credits
    estimated_completion_seconds: int
    cancel_requested: bool
    output_hub_repo: str | None
    output_is_mock: bool
    runner: str


class SimulationModel(SimulationSummary):
    """A simulation request with its timeline, oldest first."""

    timeline: list[MomentModel]


class OperatedSimulation(SimulationModel):
    """A simulation request as operators see it.

    `runner_handle` names the job at the runner. `step` is what is done next (submit, follow, collect,
    publish, or nothing once it has ended), `due_at` when, and `attempts` how often in a row it failed.
    """

    runner_handle: str | None
    step: Step
    due_at: datetime | None
    attempts: int


class Ordered(SimulationModel):
    """The answer to an order; `cached` when a request that completed lately answered it for nothing."""

    cached: bool


class RequestsQuery(Page):
    """Which requests are listed."""

    state: State | None = Field(None, description="Only those in this state.")


class AllRequestsQuery(RequestsQuery):
    """Which of everybody's requests are listed."""

    user: str | None = Field(None, max_length=96, description="Only those of this account.")
    channel: str | None = Field(None, max_length=64, description="Only those of this channel.")


class EstimateQuery(BaseModel):
    """What an estimate is asked for."""

    channel: str
    events: int
    pileup: int


class EstimateModel(BaseModel):
    """What an order takes; 1 credit is 1 node-hour."""

    channel: str
    events: int
    pileup: int
    credits: Credits
    node_hours: Credits
    node_seconds: float


class KnobModel(Answer):
    """The whole numbers that a knob may be set to, both ends included."""

    least: int
    most: int


class KnobsModel(Answer):
    """What may be ordered here; channels by name."""

    channels: list[str]
    events: KnobModel
    pileup: KnobModel
    seed: KnobModel
    default_seed: int


class PresetModel(BaseModel):
    """A named bundle of the three knobs, and what it takes."""

    name: str
    channel: str
    events: int
    pileup: int
    credits: Credits


class OutputModel(Answer):
    """A parquet file of a request's output, as it is kept."""

    path: str
    sha256: str
    size_bytes: int
    rows: int
