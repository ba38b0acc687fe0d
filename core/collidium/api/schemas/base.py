"""What the shapes of requests are made of, and errors."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    WithJsonSchema,
)

from collidium.contracts.identity import USERNAME


def _number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("not a number")
    return value


#: Credits as they come in: a JSON number; text that looks like one is refused.
Amount = Annotated[Decimal, BeforeValidator(_number), WithJsonSchema({"type": "number"})]

HubUsername = Annotated[str, StringConstraints(pattern=f"^{USERNAME.pattern}$", max_length=96)]


#: What a person typed: PostgreSQL stores no null character.
Text = Annotated[str, StringConstraints(pattern=r"^[^\x00]*$", min_length=1, max_length=1000)]


class Body(BaseModel):
    """Base of request bodies: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


def example(fields: dict[str, JsonValue], *, strict: bool = False) -> ConfigDict:
    """A model's configuration that adds an example of it to the OpenAPI document."""
    config = ConfigDict(json_schema_extra={"examples": [fields]})
    if strict:  # else what the base class has
        config["strict"] = True
    return config


class IdempotencyHeaders(BaseModel):
    """Headers of an order or an operator action."""

    idempotency_key: str | None = Field(
        None,
        alias="Idempotency-Key",
        description="1 to 128 visible ASCII characters: the same key again gives the first answer.",
    )


class FieldProblem(BaseModel):
    """One thing wrong with what was sent."""

    model_config = ConfigDict(extra="allow")

    detail: str
    field: str | None = None
    code: str | None = None
    column: str | None = None
    event_id: int | None = None
    count: int | None = None
    examples: list[dict[str, Any]] | None = None


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str
    errors: list[FieldProblem] | None = None
