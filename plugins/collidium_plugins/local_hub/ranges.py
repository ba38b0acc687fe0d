"""The ``Range`` of a request (RFC 9110, section 14)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_RANGE: Final = re.compile(r"\s*bytes\s*=\s*(\d{0,19})\s*-\s*(\d{0,19})\s*")


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes ``start`` to ``stop``, ``stop`` not included."""

    start: int
    stop: int

    @property
    def length(self) -> int:
        return self.stop - self.start


class NotSatisfiable(ValueError):
    """The file has none of the requested bytes."""


def requested_range(header: str | None, size: int) -> ByteRange | None:
    """The requested bytes of a file of ``size`` bytes, or None for the whole file.

    An unknown header, or one with several ranges, means the whole file, as the standard allows.
    Raises NotSatisfiable.
    """
    match = _RANGE.fullmatch(header) if header else None
    if match is None or not any(match.groups()):
        return None
    first, last = match.groups()
    if not first:
        span = ByteRange(max(0, size - int(last)), size)
    elif last and int(last) < int(first):
        return None
    else:
        span = ByteRange(int(first), min(int(last) + 1, size) if last else size)
    if span.length <= 0:
        raise NotSatisfiable
    return span
