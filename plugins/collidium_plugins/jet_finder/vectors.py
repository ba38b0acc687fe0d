"""Four-vectors of many events in one array each."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class FourVectors:
    """Arrays of one length, in the order of ``event``; GeV."""

    #: The row of the event in the table that it comes from.
    event: Integers
    px: Doubles
    py: Doubles
    pz: Doubles
    energy: Doubles

    def __len__(self) -> int:
        return len(self.event)

    @property
    def pt(self) -> Doubles:
        return np.hypot(self.px, self.py)

    @property
    def eta(self) -> Doubles:
        """Pseudorapidity; infinite along the beams, 0 without momentum."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.pz == 0, 0.0, np.arcsinh(self.pz / self.pt))

    @property
    def phi(self) -> Doubles:
        """Azimuth, from -π to π."""
        return np.arctan2(self.py, self.px)

    @property
    def mass(self) -> Doubles:
        """Invariant mass; 0 where rounding makes its square negative."""
        square = self.energy**2 - self.px**2 - self.py**2 - self.pz**2
        return np.sqrt(np.maximum(square, 0.0))

    def take(self, index: npt.NDArray[Any]) -> FourVectors:
        """Those at the places ``index``."""
        return FourVectors(*(getattr(self, field.name)[index] for field in fields(self)))

    def scaled(self, factor: float) -> FourVectors:
        """The same directions with momenta and energies times ``factor``."""
        momenta = (self.px, self.py, self.pz, self.energy)
        return FourVectors(self.event, *(component * factor for component in momenta))

    def followed_by(self, others: FourVectors) -> FourVectors:
        """These and then the others, whose events may be the same ones."""
        pairs = ((getattr(self, field.name), getattr(others, field.name)) for field in fields(self))
        return FourVectors(*(np.concatenate(pair) for pair in pairs))

    def summed(self, group: Integers, groups: int) -> FourVectors:
        """The sum of each of ``groups`` groups, none empty; ``group`` rises and says whose each vector is."""
        starts = np.searchsorted(group, np.arange(groups))
        momenta = (self.px, self.py, self.pz, self.energy)
        sums = (np.add.reduceat(one, starts) if groups else one[:0] for one in momenta)
        return FourVectors(self.event[starts], *sums)
