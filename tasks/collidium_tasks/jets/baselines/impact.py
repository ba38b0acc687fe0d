"""The floor: the largest impact parameter significance of a jet."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Tables
from collidium_tasks.jets.baselines import predictions
from collidium_tasks.jets.baselines.matching import jets_of

#: A significance at which a jet is as probably b as not, and how much of the rest is charm.
_EVEN: Final = 5.0
_CHARM: Final = 0.2


def reconstruct(tables: Tables) -> pa.Table:
    """Probabilities that rise with the largest significance of an impact parameter in the jet."""
    largest = np.array([jet.d0.max(initial=0.0) for jet in jets_of(tables)])
    bottom = largest / (largest + _EVEN)
    return predictions(tables["jets"], bottom, _CHARM * (1.0 - bottom))
