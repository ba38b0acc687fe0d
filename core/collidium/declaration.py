"""Fields that are declared once, in a struct, with their wording and limits.

Bodies (:mod:`collidium.api.declaration`), options of commands (:mod:`collidium.cli.declaration`), forms and
text are made from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, structs


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredField:
    """A field as its users see it. Its name, type and default are those of the struct."""

    label: str
    help: str
    name: str = ""
    #: Without None, which ``is_nullable`` allows.
    type: type[Any] = str
    is_nullable: bool = False
    is_required: bool = False
    #: None for a required field, too.
    default: Any = None
    #: Range of a number without a server or a pipeline, which may narrow it.
    minimum: int = 0
    maximum: int = 0
    #: Maximum length of a text, its possible values, and its pattern; empty: any.
    longest: int = 64
    choices: tuple[str, ...] = ()
    pattern: str = ""
    placeholder: str = ""
    #: Whether it is a long text, which a command reads from a file.
    is_document: bool = False
    #: Its option in commands, by default its name; that of a flag has another one with ``--no-``.
    option: str = ""
    #: How the option of a date gives None; ``never`` does, too.
    none: str = "never"
    #: How a value that is empty is shown in a table.
    empty: str = "none"
    #: Whether schemas and options enforce its limits; otherwise the domain does, with all problems at once.
    is_limited_by_schema: bool = True
    #: Whether a server sets its maximum.
    is_limited_by_server: bool = False

    @property
    def is_number(self) -> bool:
        """Whether it is a whole number."""
        return self.type is int

    @property
    def is_text(self) -> bool:
        """Whether it is a text that is none of a few choices."""
        return self.type is str and not self.choices


Declared = TypeVar("Declared", bound=DeclaredField)


def declare(field: DeclaredField) -> Meta:
    """Return the metadata of a field of a struct: ``Annotated[int, declare(DeclaredField(...))]``."""
    enum = {"enum": [*field.choices]} if field.choices else None
    return Meta(description=field.help, extra_json_schema=enum, extra={"field": field})


def fields_of(struct: type[msgspec.Struct], kind: type[Declared]) -> tuple[Declared, ...]:
    """Return the fields of a struct that declares all of them, in its order."""
    hints = get_type_hints(struct, include_extras=True)
    return tuple(_completed(field, hints[field.name], kind) for field in structs.fields(struct))


def _completed(field: structs.FieldInfo, hint: Any, kind: type[Declared]) -> Declared:
    declared = hint.__metadata__[-1].extra["field"]
    if not isinstance(declared, kind):
        raise TypeError(f"{field.name} is no {kind.__name__}")
    union = get_args(hint.__origin__) if get_origin(hint.__origin__) in {Union, UnionType} else ()
    plain = next((one for one in union if one is not NoneType), hint.__origin__)
    return replace(
        declared,
        name=field.name,
        type=get_args(plain)[0] if get_origin(plain) is Annotated else plain,
        is_nullable=NoneType in union,
        is_required=field.required,
        default=None if field.required else field.default,
    )


def values_of(record: msgspec.Struct, fields: Iterable[DeclaredField]) -> dict[str, Any]:
    """Return the values of declared fields by name, without others of a record that extends their struct."""
    values = structs.asdict(record)
    return {field.name: values[field.name] for field in fields}


def facts(fields: Iterable[DeclaredField], values: Mapping[str, Any]) -> dict[str, object]:
    """Return the values of fields by their labels."""
    return {
        field.label.lower(): field.empty if values[field.name] in ("", None) else values[field.name]
        for field in fields
    }
