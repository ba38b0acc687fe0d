"""The material that FATRAS and the Kalman filter meet is that of the Open Data Detector."""

from __future__ import annotations

import numpy as np
import pytest
from docs.make_material import MIDDLE, ours, reference

from collidium_plugins.acts_pipeline.detector import material

#: Bins of |η|, 0.13 wide, from the middle: the barrels, the services between them and the endcaps, the discs,
#: the end.
BINS = {"pixel": (1, 6, 16, 23), "sstrips": (1, 9, 14, 23), "lstrips": (2, 8, 12)}
#: Of both lengths; the mean of so many lines is good to 2%.
TOLERANCE = 0.10
LINES = 150


@pytest.mark.parametrize("part", BINS)
def test_material_of_a_subdetector_is_within_a_tenth(part: str) -> None:
    bins = [one for away in BINS[part] for one in (MIDDLE - 1 - away, MIDDLE + away)]
    assert ours(part, bins, LINES) == pytest.approx(reference(part)[bins], rel=TOLERANCE)


def test_pipe_and_solenoid_are_those_of_the_reference() -> None:
    for part, slab in (("beampipe", material.BEAM_PIPE), ("solenoid", material.SOLENOID)):
        found = material.radiation_lengths(slab), material.interaction_lengths(slab)
        assert np.array(found) == pytest.approx(reference(part)[MIDDLE], rel=TOLERANCE)
