"""File descriptors that are used up: recognises the errors, and limits how often they are logged."""

from __future__ import annotations

import errno
import logging
import math
from collections.abc import Iterator
from time import monotonic
from typing import Final

#: Of the process, and of the machine.
_USED_UP: Final = frozenset({errno.EMFILE, errno.ENFILE})
#: Time between two log lines of one logger.
_PAUSE_SECONDS: Final = 10.0


def are_used_up(error: BaseException) -> bool:
    """Whether an error, or one that caused it, means that no file or socket can be opened now.

    Also where the cause is not shown (``raise … from None``), and where a library wraps it in its own error.
    """
    return any(isinstance(cause, OSError) and cause.errno in _USED_UP for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    left = [error]
    while left:
        cause = left.pop()
        if id(cause) not in seen:
            seen.add(id(cause))
            yield cause
            others = (cause.__cause__, cause.__context__, *cause.args, *getattr(cause, "exceptions", ()))
            left += (other for other in others if isinstance(other, BaseException))


class FewLines(logging.Filter):
    """Pass one record in ten seconds of each logger about descriptors that are used up.

    asyncio logs one for each connection that cannot be accepted, up to a thousand a second.
    """

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[str, float] = {}
        self._left_out: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not any(are_used_up(error) for error in _errors_of(record)):
            return True
        name, moment = record.name, monotonic()
        if moment - self._passed_at.get(name, -math.inf) < _PAUSE_SECONDS:
            self._left_out[name] = self._left_out.get(name, 0) + 1
            return False
        self._passed_at[name] = moment
        if left_out := self._left_out.pop(name, 0):
            record.msg, record.args = f"{record.getMessage()} ({left_out:,} such lines were left out)", None
        return True


def _errors_of(record: logging.LogRecord) -> Iterator[BaseException]:
    if record.exc_info and record.exc_info[1] is not None:
        yield record.exc_info[1]
    if isinstance(record.args, tuple):
        yield from (value for value in record.args if isinstance(value, BaseException))
