"""The particles of one interaction, before it is given a place in an event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

#: Millimetres that light travels in a nanosecond.
LIGHT: Final = 299.792458


@dataclass(frozen=True, slots=True, eq=False)
class Interaction:
    """Particles of one or of several interactions: one array entry for each, a parent before its daughters.

    Vertices are relative to where the interaction takes place, in mm, and their times in ns; momenta and
    masses in GeV. ``parent`` is the place of the parent in the same interaction, -1 for none.
    """

    pdg_id: npt.NDArray[np.int64]
    charge: npt.NDArray[np.float32]
    mass: npt.NDArray[np.float32]
    px: npt.NDArray[np.float32]
    py: npt.NDArray[np.float32]
    pz: npt.NDArray[np.float32]
    energy: npt.NDArray[np.float32]
    vx: npt.NDArray[np.float32]
    vy: npt.NDArray[np.float32]
    vz: npt.NDArray[np.float32]
    time: npt.NDArray[np.float32]
    primary: npt.NDArray[np.bool_]
    parent: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.pdg_id)

    @classmethod
    def from_rows(cls, rows: Sequence[tuple[Any, ...]]) -> Self:
        """From one tuple per particle, in the order of the fields."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(TYPES)
        return cls(*(np.array(column, kind) for column, kind in zip(columns, TYPES.values(), strict=True)))

    @classmethod
    def join(cls, interactions: Iterable[Interaction]) -> Self:
        """One after the other; parents stay places within their own interaction."""
        parts = list(interactions)
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in TYPES))


TYPES: Final[dict[str, type[Any]]] = dict(
    zip(
        (field.name for field in fields(Interaction)),
        (np.int64, *(np.float32,) * 10, np.bool_, np.int32),
        strict=True,
    )
)
