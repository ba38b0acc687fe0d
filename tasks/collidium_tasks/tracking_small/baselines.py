"""The reconstructions of the tracking task, with their parameters counted as the card says."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from collidium.contracts.task import Tables
from collidium_tasks.tracking.baselines import helix as following_helices
from collidium_tasks.tracking.baselines import naive as binning

#: Numbers of bins, their range, and the minimum number of hits of a track.
NAIVE: Final = 4
#: Cuts and reaches (20), where parts of the detector begin (4), resolutions (19), the magnetic field (1).
HELIX: Final = 44


def naive(tables: Tables) -> pa.Table:
    """Hits in the same direction from the origin form a track."""
    return with_parameters(binning.reconstruct(tables), NAIVE)


def helix(tables: Tables) -> pa.Table:
    """Hits along helices form a track."""
    return with_parameters(following_helices.reconstruct(tables), HELIX)


def with_parameters(predictions: pa.Table, n_params: int) -> pa.Table:
    """Predictions of the tracking task as those of this one."""
    return predictions.append_column("n_params", pa.array(np.full(predictions.num_rows, n_params, np.int64)))
