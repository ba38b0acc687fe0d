"""Units of ACTS in those of the hosted tables: mm, ns, GeV."""

from __future__ import annotations

from typing import Final

import acts

GEV: Final[float] = acts.UnitConstants.GeV
NANOSECOND: Final[float] = acts.UnitConstants.ns
TESLA: Final[float] = acts.UnitConstants.T
