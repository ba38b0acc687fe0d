"""A model in a process of its own: no network, no files, limits of memory and time, one core.

The contract between an evaluation and what runs its model is :class:`Sandbox`: arrays in, arrays and times
out. A second kind of model, a program in a container, is another class with these three methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from msgspec import Struct

Arrays = Sequence[npt.NDArray[np.generic]]

#: The largest file of a model.
MAX_MODEL_BYTES: Final = 100_000_000


class Limits(Struct, frozen=True):
    """Limits of a sandbox."""

    memory_bytes: int = 4 * 1024**3
    #: To start, to parse and to load a model; wall-clock.
    load_seconds: float = 60.0
    #: Of one call of :meth:`Sandbox.predict`; wall-clock.
    call_seconds: float = 600.0


class Facts(Struct, frozen=True):
    """What a model is: its size as the leaderboard counts it, and a summary of its graph."""

    n_params: int
    #: Numbers stored, and the bytes they take; of the whole file.
    numbers: int
    number_bytes: int
    file_bytes: int
    nodes: int
    opset: int
    #: Operator -> how many nodes.
    operators: dict[str, int]
    #: What holds the process: ``network``, ``files``, ``cgroup``, ...; others are missing on this machine.
    confined_by: tuple[str, ...]


class Outcome(Struct, frozen=True):
    """The outputs of one batch, in the order of the manifest, and the time they took.

    ``cpu_seconds`` is of the whole process, post-processing included, transfer excluded.
    """

    outputs: list[npt.NDArray[np.generic]]
    cpu_seconds: float
    wall_seconds: float


class Sandbox(Protocol):
    """A loaded model in a fresh process; a context manager that ends it. All methods block."""

    @property
    def facts(self) -> Facts:
        """Raises ModelRefused where the model cannot be loaded."""
        ...

    def predict(self, batches: Sequence[Arrays]) -> list[Outcome]:
        """Run batches one after the other.

        Raises
        ------
        ModelRefused
            The process has ended then.
        """
        ...

    def close(self) -> None:
        """End the process. Idempotent."""
        ...
