"""Memory used again from event to event: fresh pages for each would cost a third of the scoring time."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Scalar = TypeVar("Scalar", bound=np.generic)


class Buffers:
    """Named arrays that grow and are handed out again; for one thread."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def array(self, name: str, length: int, dtype: type[Scalar]) -> npt.NDArray[Scalar]:
        """An array of that length with whatever content, valid until ``name`` is asked for again."""
        array = self._arrays.get(name)
        if array is None or len(array) < length or array.dtype != dtype:
            array = self._arrays[name] = np.empty(length + length // 8, dtype)
        return array[:length]
