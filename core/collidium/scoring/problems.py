"""Problems of predictions, found in blocks and reported together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, Final

from collidium.contracts.task import Problem
from collidium.errors import InvalidInput

#: Maximum number of example rows of a problem.
MAX_EXAMPLES: Final = 5
#: Maximum number of problems in a response.
MAX_PROBLEMS: Final = 100


def merge(problems: Iterable[Problem]) -> list[Problem]:
    """Merge problems of the same code and column: counts are added, the first examples kept."""
    merged: dict[tuple[str, str | None], Problem] = {}
    for problem in problems:
        key = (problem.code, problem.column)
        first = merged.get(key)
        if first is not None:
            examples = (*first.examples, *problem.examples)
            merged[key] = replace(first, count=first.count + problem.count, examples=examples[:MAX_EXAMPLES])
        elif len(merged) < MAX_PROBLEMS:
            merged[key] = replace(problem, examples=tuple(problem.examples)[:MAX_EXAMPLES])
    return list(merged.values())


def refusal(problems: Iterable[Problem], kind: type[InvalidInput] = InvalidInput) -> InvalidInput:
    """Return the error with all problems."""
    merged = merge(problems)
    detail = f"the predictions have {len(merged)} problems"
    if len(merged) == 1:
        column = merged[0].column
        detail = f"column {column}: {merged[0].detail}" if column else merged[0].detail
    return kind(detail, errors=[as_dict(problem) for problem in merged])


def as_dict(problem: Problem) -> dict[str, Any]:
    """The problem in plain JSON values."""
    return {
        "code": problem.code,
        "detail": problem.detail,
        "column": problem.column,
        "event_id": _plain(problem.event_id),
        "count": _plain(problem.count),
        "examples": [_plain_row(row) for row in problem.examples],
    }


def _plain_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in row.items()}


def _plain(value: Any) -> Any:
    """Convert NumPy numbers and non-finite floats, which JSON does not support."""
    value = value.item() if hasattr(value, "item") else value
    return str(value) if isinstance(value, float) and not isfinite(value) else value
