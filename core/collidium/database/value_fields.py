"""Columns of text whose values are of a class of their own."""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from tortoise import fields
from tortoise.models import Model

V = TypeVar("V")


class ValueField(fields.Field[V]):
    """A column with values of a class, whose texts are parsed here alone; ``str`` makes them.

    It is one column of text, so that indexes, uniqueness and partitions compare whole values.
    """

    max_length: ClassVar[int]

    @property
    def SQL_TYPE(self) -> str:  # type: ignore[override]  # noqa: N802 -- as in Tortoise's CharField
        """The type of the column."""
        return f"VARCHAR({self.max_length})"

    def parse(self, text: str) -> Any:
        """Return the value of a text."""
        raise NotImplementedError

    def to_db_value(self, value: V, instance: type[Model] | Model) -> str | None:
        """Return the text of a value."""
        return None if value is None else str(value)

    def to_python_value(self, value: Any) -> Any:
        """Return the value of a text."""
        return self.parse(value) if type(value) is str else value

    def describe(self, serializable: bool) -> dict[str, Any]:
        """Return the description by which migrations compare it: for them it is a column of text."""
        text = fields.CharField(max_length=self.max_length).describe(serializable)
        same = ("field_type", "constraints", "db_field_types")
        return super().describe(serializable) | {name: text[name] for name in same}
