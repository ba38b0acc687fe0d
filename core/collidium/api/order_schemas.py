"""Requests about simulations, and about the messages that report on them."""

from __future__ import annotations

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    RootModel,
)

from collidium.api.answers import Page
from collidium.api.schemas import Body, example
from collidium.order import DEFAULT_SEED, LARGEST_SEED
from collidium.outbox import LONGEST_URL, Kind
from collidium.simulations import State


class OrderBody(BaseModel):
    """How an order is to be made and delivered, whatever is ordered."""

    #: Limits are the domain's to check: all problems are reported at once, in its words.
    model_config = ConfigDict(extra="forbid", strict=True)

    seed: int = Field(
        DEFAULT_SEED,
        description="The same config with the same seed gives the same events.",
        json_schema_extra={"minimum": 0, "maximum": LARGEST_SEED},
    )
    vary: str = Field(
        "", description="Systematic variation, as `field=0.99,material=1.1`: `variations` of GET /v1/limits."
    )
    private: bool = Field(False, description="Whether the output's repository is to be private.")
    webhook_url: str | None = Field(None, description="Address that is notified of the end; https:// only.")


class ChannelBody(OrderBody):
    """An order by channel, events and pileup."""

    model_config = example({"channel": "ttbar", "events": 1000, "pileup": 40})

    channel: str = Field(description="Physics process.")
    events: int = Field(description="Number of hard-scatter events.", json_schema_extra={"minimum": 1})
    pileup: int = Field(
        description="Average soft interactions overlaid per event.", json_schema_extra={"minimum": 0}
    )


class PresetBody(OrderBody):
    """An order by the name of a preset."""

    model_config = example({"preset": "ttbar-quick"})

    preset: str = Field(description="One of GET /v1/presets.")


class SimulateBody(RootModel[ChannelBody | PresetBody]):
    """An order of simulated events."""


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
    vary: str = ""


class WebhookBody(Body):
    """How an account wants to be notified."""

    model_config = example({"url": "https://hooks.example.org/collidium"}, strict=True)

    url: str | None = Field(
        None,
        max_length=LONGEST_URL,
        description="HTTPS address notified of every request; null: none. Left out, it stays as it is.",
    )
    rotate_secret: bool = Field(False, description="Make a new signing secret; the old one ends at once.")


class NotificationsBody(Body):
    """What an account wants to be notified of."""

    model_config = example({"email": "alice@example.org", "kinds": {"deadline": False}}, strict=True)

    email: str | None = Field(
        None, max_length=254, description="E-mail address; null: none. Left out, it stays as it is."
    )
    kinds: dict[Kind, bool] = Field({}, description="Kinds of events to switch on or off; others stay.")
