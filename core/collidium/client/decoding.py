"""JSON to records, by the records' own annotations."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from math import isfinite
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

Record = TypeVar("Record")


class UnexpectedAnswer(ValueError):
    """JSON that is not what the annotations promise; the message names the field."""


def decode(kind: type[Record], value: object, where: str = "answer") -> Record:
    """``value`` (from JSON, numbers with a point as Decimal) as a record. Raises UnexpectedAnswer."""
    return cast(Record, _decode(kind, value, where))


def _decode(hint: Any, value: object, where: str) -> object:
    origin = get_origin(hint)
    if origin in (Union, types.UnionType):
        return _decode_union(get_args(hint), value, where)
    if origin is tuple:
        items = _expect(list, value, where)
        if get_args(hint)[-1] is not Ellipsis and len(items) != len(get_args(hint)):
            raise UnexpectedAnswer(f"{where} has {len(items)} items, not {len(get_args(hint))}")
        return tuple(_decode(get_args(hint)[0], item, f"{where}[{i}]") for i, item in enumerate(items))
    if origin is Mapping:
        mapping = _expect(dict, value, where)
        return {key: _decode(get_args(hint)[1], item, f"{where}.{key}") for key, item in mapping.items()}
    if is_dataclass(hint):
        return _decode_record(cast(type, hint), _expect(dict, value, where), where)
    return _decode_scalar(hint, value, where)


def _decode_record(kind: type, value: dict[str, object], where: str) -> object:
    arguments = {}
    for field, hint in _fields(kind):
        if field.name in value:
            arguments[field.name] = _decode(hint, value[field.name], f"{where}.{field.name}")
        elif field.default is MISSING and field.default_factory is MISSING:
            raise UnexpectedAnswer(f"{where} lacks {field.name!r}")
    return kind(**arguments)


@cache
def _fields(kind: type) -> tuple[tuple[Field[Any], Any], ...]:
    hints = get_type_hints(kind)
    return tuple((field, hints[field.name]) for field in fields(kind))


def _decode_union(hints: tuple[Any, ...], value: object, where: str) -> object:
    if value is None and types.NoneType in hints:
        return None
    failures = []
    for hint in hints:
        if hint is not types.NoneType:
            try:
                return _decode(hint, value, where)
            except UnexpectedAnswer as error:
                failures.append(error)
    raise failures[0]


def _decode_scalar(hint: Any, value: object, where: str) -> object:
    if hint is Any:
        return value
    if hint in (int, float, Decimal):
        return _decode_number(hint, value, where)
    if hint is datetime:
        return _decode_time(_expect(str, value, where), where)
    return _expect(hint, value, where)


def _decode_number(kind: type[int | float | Decimal], value: object, where: str) -> int | float | Decimal:
    # bool is an int to Python, never to JSON.
    accepted = int if kind is int else int | Decimal
    if isinstance(value, bool) or not isinstance(value, accepted):
        raise UnexpectedAnswer(f"{where} is {_name(value)}, not {kind.__name__}")
    if not _fits_float(value):
        raise UnexpectedAnswer(f"{where} is a number beyond all bounds")
    number = kind(value)
    # 18 and not 18.0: programs print credits as they are.
    whole = isinstance(number, Decimal) and number == number.to_integral_value()
    return Decimal(number).to_integral_value() if whole else number


def _fits_float(number: int | Decimal) -> bool:
    """No number of the platform is larger; one of a billion digits fits no memory when it is written out."""
    try:
        return isfinite(float(number))
    except OverflowError:
        return False


def _decode_time(text: str, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UnexpectedAnswer(f"{where} is no RFC 3339 time: {text[:40]!r}") from None
    if moment.tzinfo is None:
        raise UnexpectedAnswer(f"{where} is a time without a zone: {text!r}")
    return moment


def _expect(kind: type[Record], value: object, where: str) -> Record:
    if not isinstance(value, kind):
        raise UnexpectedAnswer(f"{where} is {_name(value)}, not {kind.__name__}")
    return value


def _name(value: object) -> str:
    return "null" if value is None else type(value).__name__
