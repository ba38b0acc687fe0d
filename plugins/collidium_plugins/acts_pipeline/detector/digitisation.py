"""Digitisation: what modules measure of the hits, by smearing in ACTS.

Pixels measure both coordinates; short strips measure the second one less well, long strips not at all.
Where nothing is measured the hit lies in the middle of the module, as in the hosted datasets.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import acts.examples

from collidium_plugins.acts_pipeline.detector.geometry import JSON, LOG_LEVEL, Detector

#: Pitches of the hosted events, mm: their hits lie on multiples of half of them.
_PIXEL: Final = (0.050, 0.050)
_SHORT_STRIP: Final = (0.080, 0.500)
_LONG_STRIP: Final = (0.100,)
_LONG_STRIP_END: Final = (0.125,)
_PITCHES: Final[Mapping[int, tuple[float, ...]]] = {
    **dict.fromkeys((16, 17, 18), _PIXEL),
    **dict.fromkeys((23, 24, 25), _SHORT_STRIP),
    28: _LONG_STRIP_END,
    29: _LONG_STRIP,
    30: _LONG_STRIP_END,
}
#: Standard deviations of the local coordinates that modules of a volume measure, mm: of something that lies
#: anywhere within the pitch.
RESOLUTIONS: Final[Mapping[int, tuple[float, ...]]] = {
    volume: tuple(pitch / math.sqrt(12.0) for pitch in pitches) for volume, pitches in _PITCHES.items()
}
#: No measurement is further off than so many of them.
_FURTHEST: Final = 3.0


def digitisation(detector: Detector, hits: str, **outputs: str) -> Any:
    """The algorithm that makes measurements of ``hits``; ``outputs`` are names of its results."""
    return acts.examples.DigitizationAlgorithm(
        level=LOG_LEVEL,
        digitizationConfigs=_configuration(),
        surfaceByIdentifier=dict(detector.planes),
        randomNumbers=acts.examples.RandomNumbers(seed=1),
        inputSimHits=hits,
        doMerge=False,
        **outputs,
    )


def _configuration() -> Any:
    """ACTS takes it from a file alone."""
    document = {
        "acts-geometry-hierarchy-map": {
            "format-version": 0,
            "value-identifier": "digitization-configuration",
        },
        "entries": [
            {"volume": volume, "value": {"smearing": [_smearing(*one) for one in enumerate(resolutions)]}}
            for volume, resolutions in RESOLUTIONS.items()
        ],
    }
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "digitisation.json"
        path.write_text(json.dumps(document))
        return JSON.readDigiConfigFromJson(str(path))


def _smearing(index: int, resolution: float) -> dict[str, Any]:
    return {
        "index": index,
        "mean": 0.0,
        "stddev": resolution,
        "type": "GaussClipped",
        "range": [-_FURTHEST, _FURTHEST],
    }
