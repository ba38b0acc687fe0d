"""The ``Range`` of a request (RFC 9110, section 14): the part of a file that is wanted."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_RANGE: Final = re.compile(r"\s*bytes\s*=\s*(\d{0,19})\s*-\s*(\d{0,19})\s*")


@dataclass(frozen=True, slots=True)
class Span:
    """Bytes ``start`` to ``stop``, ``stop`` not included."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        return self.stop - self.start


class NotSatisfiable(ValueError):
    """The file has nothing of what is wanted."""


def wanted_span(header: str | None, size: int) -> Span | None:
    """The span of a file of ``size`` bytes, or None for the whole file.

    A header that is not understood, or that names several ranges, is answered with the whole file, as the
    standard allows. Raises NotSatisfiable.
    """
    match = _RANGE.fullmatch(header) if header else None
    if match is None or not any(match.groups()):
        return None
    first, last = match.groups()
    if not first:
        span = Span(max(0, size - int(last)), size)
    elif last and int(last) < int(first):
        return None
    else:
        span = Span(int(first), min(int(last) + 1, size) if last else size)
    if span.length <= 0:
        raise NotSatisfiable
    return span
