"""Models of bodies and queries, made from declared fields."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from pydantic import BaseModel, Field, create_model

from collidium.declaration import DeclaredField

Model = TypeVar("Model", bound=BaseModel)


def declared_model(
    name: str, summary: str, base: type[Model], fields: Iterable[DeclaredField], **defaults: Any
) -> type[Model]:
    """Return a model with declared fields, required ones without a default, in addition to its base's."""
    declared: dict[str, Any] = {
        field.name: (field.type, _documented(field, defaults.get(field.name, field.default)))
        for field in fields
    }
    return create_model(name, __base__=base, __doc__=summary, **declared)


def _documented(field: DeclaredField, default: Any) -> Any:
    limits = {"minimum": field.minimum, "maximum": field.maximum} if field.is_number else {}
    if field.is_limited_by_server:
        del limits["maximum"]
    return Field(... if default is None else default, description=field.help, json_schema_extra={**limits})
