"""The baselines, which use measured quantities only: `impact`, and the modules of the others."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from collidium.contracts.tables import flatten
from collidium.contracts.task import Tables
from collidium_tasks.jets.baselines.features import jets_of
from collidium_tasks.jets.card import PROBABILITIES


def predictions(jets: pa.Table, bottom: npt.NDArray[Any], charm: npt.NDArray[Any]) -> pa.Table:
    """Return one row per jet of table ``jets``; light jets get the remaining probability."""
    table = flatten(jets, ["jet_id"])
    for name, values in zip(PROBABILITIES, (bottom, charm, 1.0 - bottom - charm), strict=True):
        table = table.append_column(name, pa.array(np.clip(values, 0.0, 1.0).astype(np.float32)))
    return table


#: The impact parameter significance at which prob_b is 1/2, and prob_c over 1 - prob_b.
_EVEN: Final = 5.0
_CHARM: Final = 0.2


def impact(tables: Tables) -> pa.Table:
    """Probabilities that rise with the largest impact parameter significance in the jet; sets the floor."""
    largest = np.array([jet.d0.max(initial=0.0) for jet in jets_of(tables)])
    bottom = largest / (largest + _EVEN)
    return predictions(tables["jets"], bottom, _CHARM * (1.0 - bottom))
