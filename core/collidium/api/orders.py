"""Bodies and queries of orders, made from the declaration of an order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, create_model
from quart import request

from collidium import simulations
from collidium.api.context import platform
from collidium.api.declaration import declared_model
from collidium.api.problems import schema_refusal
from collidium.api.schemas import example, written_as
from collidium.errors import InvalidInput
from collidium.order import ORDER_FIELDS, PRESETS, Order, order_of
from collidium.outbox import HTTPS, LONGEST_URL


class OrderBody(BaseModel):
    """What bodies have in addition to an order."""

    #: The domain checks limits, and reports all problems at once.
    model_config = ConfigDict(extra="forbid", strict=True)

    private: bool = Field(False, description="Whether to publish the output in a private repository.")
    webhook_url: str | None = Field(
        None,
        description="HTTPS address that is notified when the request ends.",
        json_schema_extra={"maxLength": LONGEST_URL, **written_as(HTTPS)},
    )

    def order(self) -> Order:
        """Return the order. Raises UnknownOrder for an unknown preset."""
        given = self.model_dump(exclude={*OrderBody.model_fields})
        return order_of(given.pop("preset", None), **given)


class _ByChannel(OrderBody):
    model_config = example({"channel": "ttbar", "events": 1000, "pileup": 40})


class _ByPreset(OrderBody):
    model_config = example({"preset": "ttbar-quick"})

    preset: str = Field(max_length=64, description="One of GET /v1/presets.")


ChannelBody: Final = declared_model(
    "ChannelBody", "An order by channel, events and pileup.", _ByChannel, ORDER_FIELDS
)
PresetBody: Final = declared_model(
    "PresetBody",
    "An order by the name of a preset.",
    _ByPreset,
    [field for field in ORDER_FIELDS if not field.is_required],
)
_any_body: Any = ChannelBody | PresetBody
SimulateBody: Final = create_model(
    "SimulateBody", __base__=RootModel, __doc__="An order of simulated events.", root=(_any_body, ...)
)
EstimateQuery: Final = declared_model(
    "EstimateQuery", "The order to estimate.", BaseModel, [field for field in ORDER_FIELDS if field.is_priced]
)

#: Valid values for required fields, to check the others.
_VALID: Final = {
    field.name: field.minimum if field.type is int else "" for field in ORDER_FIELDS if field.is_required
} | {"preset": next(iter(PRESETS))}


async def order_body(channel_body: type[OrderBody]) -> OrderBody:
    """Parse the body of the request as a preset or ``channel_body``; raises with all problems."""
    data = await request.get_json()
    if not isinstance(data, dict):
        raise InvalidInput("the body must be a JSON object with channel, events and pileup, or a preset")
    model = PresetBody if "preset" in data else channel_body
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise schema_refusal(error, _other_problems(model, data, error)) from error


def _other_problems(
    model: type[OrderBody], data: Mapping[str, Any], error: ValidationError
) -> list[Mapping[str, Any]]:
    """Problems of an order in the fields that have the documented shape, while others do not."""
    wrong = {str(item["loc"][0]) for item in error.errors() if item["loc"]}
    right = {name: data[name] for name in model.model_fields if name in data and name not in wrong}
    filled = {name: value for name, value in _VALID.items() if name in model.model_fields}
    parts = platform()
    try:
        simulations.estimate(model.model_validate(filled | right).order(), parts.settings, parts.pipeline)
    except InvalidInput as other:
        return [problem for problem in other.errors if problem.get("field") not in wrong]
    return []
