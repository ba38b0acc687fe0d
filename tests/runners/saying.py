"""Errors of runners: what owners of jobs read, and what only operators do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from collidium.contracts.runner import RunnerUnavailable


@contextmanager
def unavailable(told: str, *, operators: str) -> Iterator[None]:
    """The block raises RunnerUnavailable: the one pattern is in its message, the other in its cause alone."""
    with pytest.raises(RunnerUnavailable, match=told) as caught:
        yield
    assert re.search(operators, str(caught.value.__cause__))
    assert not re.search(operators, str(caught.value))
