"""The error for broken promises, and checks that several contracts share."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Protocol

_NAME = re.compile(r"[a-z][a-z0-9_]*")


class Nonconforming(AssertionError):
    """The implementation breaks a promise of its contract; the message describes it."""


class _Closes(Protocol):
    async def close(self) -> None: ...


def promise(kept: bool, broken: str) -> None:
    """Raise :class:`Nonconforming` with ``broken`` unless ``kept``."""
    if not kept:
        raise Nonconforming(broken)


class refuses(AbstractContextManager[None]):  # noqa: N801 -- reads as a verb, like pytest.raises
    """A context manager: raises Nonconforming unless the block raises ``expected``."""

    def __init__(self, expected: type[BaseException], what: str) -> None:
        self._expected = expected
        self._what = what

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if kind is not None and issubclass(kind, self._expected):
            return True
        raised = "nothing" if error is None else repr(error)
        raise Nonconforming(f"{self._what} must raise {self._expected.__name__}, not {raised}") from error


def check_name(name: object, kind: str) -> None:
    """Check that a name can be used in settings, URLs and column headers."""
    promise(
        isinstance(name, str) and _NAME.fullmatch(name) is not None,
        f"{kind} needs a name of lower-case letters, digits and underscores, not {name!r}",
    )


async def check_close(thing: _Closes) -> None:
    """Close twice: the second time must do nothing."""
    await thing.close()
    await quietly(thing.close(), "closing a second time must do nothing")


async def quietly(call: Awaitable[None], what: str) -> None:
    """Await ``call``, which must not raise; ``what`` is the promise."""
    try:
        await call
    except Exception as error:  # third-party code may raise anything
        raise Nonconforming(f"{what}, but raises {error!r}") from error
