"""The base class of records, types of their fields, and their JSON encoding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from math import isfinite
from typing import Annotated, Any, Final, Generic, Self, TypeVar

import msgspec
from msgspec import Meta

#: An amount of credits or node-hours, to three decimal places; a number in JSON.
Credits = Annotated[Decimal, Meta(description="To three decimal places.")]

#: A time with time zone; RFC 3339 in JSON.
Time = Annotated[datetime, Meta(tz=True)]


class Record(msgspec.Struct, frozen=True):
    """Base of records: immutable, compared by their fields.

    Decimals have no trailing zeros. Decoding ignores unknown fields, so that a client understands newer
    servers.

    Raises
    ------
    ValueError
        For a number that float64 cannot represent; decoding reports it as ``msgspec.ValidationError``.
    """

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            kind = type(value)
            if kind is Decimal:
                _require_float(name, value)
                msgspec.structs.force_setattr(self, name, _without_zeros(value))
            elif kind is int:
                _require_float(name, value)

    @classmethod
    def of(cls, source: object, **more: Any) -> Self:
        """Build a record from an object with the same attributes.

        Parameters
        ----------
        source : object
            Its attributes with the names of fields are copied.
        **more
            Values of fields, which take precedence.

        Returns
        -------
        Record
        """
        for name in cls.__struct_fields__:
            if name not in more and (value := getattr(source, name, _NOTHING)) is not _NOTHING:
                more[name] = value
        return cls(**more)


_NOTHING: Final = object()


def _as_text(value: Any) -> str:
    """Return the plain text of a value that is a text with a class of its own."""
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} is no type of JSON")


_ENCODER: Final = msgspec.json.Encoder(decimal_format="number", enc_hook=_as_text)


def encode(value: Record | Sequence[Record]) -> bytes:
    """Encode records as JSON.

    Parameters
    ----------
    value : Record or sequence of Record
        Infinity and NaN become null.

    Returns
    -------
    bytes
    """
    return _ENCODER.encode(value)


def as_json(record: Record) -> dict[str, Any]:
    """Convert a record to JSON's own types.

    Parameters
    ----------
    record : Record

    Returns
    -------
    dict
    """
    found: dict[str, Any] = msgspec.json.decode(encode(record))
    return found


def _require_float(name: str, number: Decimal | int) -> None:
    """Raise ValueError for numbers that would be huge when written out."""
    try:
        if isfinite(float(number)):
            return
    except OverflowError:
        pass
    raise ValueError(f"`{name}` is a number beyond all bounds")


def _without_zeros(number: Decimal) -> Decimal:
    """Return 18 instead of 18.0 or 1.8E+1, because programs print credits unformatted."""
    whole = number.to_integral_value()
    return Decimal(int(whole)) if whole == number else number.normalize()


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list; ``cursor=page.next_cursor`` requests the next one, unless it is None."""

    items: tuple[Item, ...]
    next_cursor: str | None = None
    #: The server's warning about the list, such as its age; usually empty.
    warning: str = ""

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: int) -> Item:
        return self.items[index]
