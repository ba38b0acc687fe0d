"""Units of ACTS in those of the hosted tables: mm, ns, GeV."""

from __future__ import annotations

from typing import Any, Final

import acts
import acts.examples.arrow
import acts.examples.json

GEV: Final[float] = acts.UnitConstants.GeV
NANOSECOND: Final[float] = acts.UnitConstants.ns
TESLA: Final[float] = acts.UnitConstants.T


ARROW: Final[Any] = acts.examples.arrow
JSON: Final[Any] = acts.examples.json
