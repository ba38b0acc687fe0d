"""Columns with versions of truth."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeVar

from collidium.database import ValueField
from collidium.scoring.truth.parts import ScoredTruth

T = TypeVar("T", ScoredTruth, ScoredTruth | None)

#: Thousands of rows have one version.
_parse = lru_cache(maxsize=1000)(ScoredTruth)


class ScoredTruthField(ValueField[T]):
    """A column with a version of truth; one that may have none is of ``ScoredTruth | None``."""

    max_length = 64

    def parse(self, text: str) -> ScoredTruth:
        """Return the version of a text."""
        return _parse(text)
