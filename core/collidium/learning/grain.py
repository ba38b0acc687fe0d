"""A stream as a dataset of grain, which must be installed separately."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import grain  # pyright: ignore[reportMissingImports]  # an extra

from collidium.learning.batch import Batch
from collidium.learning.stream import EventStream


class EventDataset(grain.IterDataset):  # type: ignore[misc]  # grain is not installed where types are checked
    """Batches of one epoch of a stream, for grain's transformations and checkpoints.

    Parameters
    ----------
    stream
        The stream, whose state does not change.
    transform
        Converts each batch; default: to dicts of arrays.
    """

    def __init__(self, stream: EventStream, transform: Callable[[Batch], Any] = Batch.arrays) -> None:
        super().__init__()
        self.stream = stream
        self.transform = transform

    def __iter__(self) -> _Iterator:
        return _Iterator(copy(self.stream), self.transform)


class _Iterator(grain.DatasetIterator):  # type: ignore[misc]  # grain has no types
    def __init__(self, stream: EventStream, transform: Callable[[Batch], Any]) -> None:
        super().__init__()
        self._stream = stream
        self._transform = transform
        self._batches = iter(stream)

    def __next__(self) -> Any:
        return self._transform(next(self._batches))

    def get_state(self) -> dict[str, Any]:
        return self._stream.state_dict()

    def set_state(self, state: dict[str, Any]) -> None:
        self._stream.load_state_dict(state)
        self._batches = iter(self._stream)
