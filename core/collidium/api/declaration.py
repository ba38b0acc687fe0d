"""Models of bodies and queries, made from declared fields."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, Field, JsonValue, create_model

from collidium.api.schemas import Date
from collidium.declaration import DeclaredField

Model = TypeVar("Model", bound=BaseModel)

#: Indexed with values that type checkers cannot know.
_LITERAL: Final[Any] = Literal
_TYPES: Final[dict[type, Any]] = {datetime: Date}


def declared_model(
    name: str, summary: str, base: type[Model], fields: Iterable[DeclaredField], **defaults: Any
) -> type[Model]:
    """Return a model with declared fields, required ones without a default, in addition to its base's."""
    declared: dict[str, Any] = {
        field.name: (_type(field), _described(field, defaults.get(field.name, _default(field))))
        for field in fields
    }
    return create_model(name, __base__=base, __doc__=summary, **declared)


def _type(field: DeclaredField) -> Any:
    plain: Any = _LITERAL[field.choices] if field.choices else _TYPES.get(field.type, field.type)
    return plain | None if field.is_nullable else plain


def _default(field: DeclaredField) -> Any:
    return ... if field.is_required else field.default


def _described(field: DeclaredField, default: Any) -> Any:
    if not field.is_limited_by_schema:
        limits: dict[str, JsonValue] = {"maxLength": field.longest}
        if field.is_number:
            limits = {"minimum": field.minimum, "maximum": field.maximum}
        if field.is_limited_by_server:
            del limits["maximum"]
        return Field(default, description=field.help, json_schema_extra=limits)
    return Field(
        default,
        description=field.help,
        ge=field.minimum if field.is_number else None,
        le=field.maximum if field.is_number else None,
        max_length=field.longest if field.is_text else None,
        pattern=field.pattern or None if field.is_text else None,
    )
