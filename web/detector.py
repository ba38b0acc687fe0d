"""Writes the detector geometry of the event display, derived from hits of events.

    python web/detector.py DIRECTORY > plugins/collidium_plugins/webapps/static/detectors/odd.json

DIRECTORY has ``tracker_hits.parquet`` and ``calo_hits.parquet`` of events in the Open Data Detector; the
committed file is made from the sample, and a test makes it again. Barrel layers are clusters of the radii of
hits, discs are clusters of |z|, so that both endcaps are equal.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from collidium.contracts import FIELD_TESLA

#: Volume ids of the negative endcap, the barrel and the positive endcap.
PARTS: Final = {"pixels": (16, 17, 18), "short strips": (23, 24, 25), "long strips": (28, 29, 30)}
#: Gaps between layers, mm: modules of one layer overlap, and the two sides of the long strips' discs are
#: 51 mm apart.
BARREL_GAP: Final = 25.0
DISC_GAP: Final = 60.0

Array = npt.NDArray[np.float64]


def detector(directory: Path) -> dict[str, Any]:
    """Layers, volumes and faces; lengths in mm."""
    volume, x, y, z = _columns(directory / "tracker_hits.parquet", "volume_id", "x", "y", "z")
    r = np.hypot(x, y)
    layers: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for part, (negative, barrel, positive) in PARTS.items():
        names |= {
            str(negative): f"{part}, z < 0",
            str(barrel): f"{part}, barrel",
            str(positive): f"{part}, z > 0",
        }
        layers += _barrel(barrel, r[volume == barrel], z[volume == barrel])
        ends = np.isin(volume, (negative, positive))
        layers += _discs((negative, positive), r[ends], np.abs(z[ends]))
    return {
        "name": "Open Data Detector",
        "field": FIELD_TESLA,
        "volumes": names,
        "layers": layers,
        "tracker": {"radius": _up(r), "length": _up(np.abs(z))},
        "calorimeter": _faces(directory, _up(r)),
    }


def _barrel(volume: int, r: Array, z: Array) -> list[dict[str, Any]]:
    half = _up(np.abs(z))
    return [
        {"volume": volume, "kind": "barrel", "r": [low, high], "z": [-half, half]}
        for low, high in _clusters(r, BARREL_GAP)
    ]


def _discs(volumes: tuple[int, int], r: Array, z: Array) -> list[dict[str, Any]]:
    radii = [float(np.floor(r.min())), _up(r)]
    return [
        {"volume": volume, "kind": "disc", "r": radii, "z": sorted((side * low, side * high))}
        for volume, side in zip(volumes, (-1, 1), strict=True)
        for low, high in _clusters(z, DISC_GAP)
    ]


def _clusters(values: Array, gap: float) -> list[tuple[float, float]]:
    """Minimum and maximum of each cluster."""
    ordered = np.sort(values)
    parts = np.split(ordered, np.flatnonzero(np.diff(ordered) > gap) + 1)
    return [(round(float(part[0]), 1), round(float(part[-1]), 1)) for part in parts]


def _faces(directory: Path, radius: float) -> dict[str, float]:
    """Inner faces of the calorimeters: of the endcaps behind a tracker of ``radius``, and of the barrel."""
    x, y, z = _columns(directory / "calo_hits.parquet", "x", "y", "z")
    r, distance = np.hypot(x, y), np.abs(z)
    length = float(np.floor(distance[r < radius].min()))
    return {"radius": float(np.floor(r[distance < length].min())), "length": length}


def _columns(file: Path, *names: str) -> list[Array]:
    table = pq.read_table(file, columns=list(names))
    return [np.asarray(pc.list_flatten(table.column(name)).cast(pa.float64())) for name in names]


def _up(values: Array) -> float:
    return float(np.ceil(values.max()))


if __name__ == "__main__":
    json.dump(detector(Path(sys.argv[1])), sys.stdout, indent=1)
    print()  # noqa: T201 -- a text file ends with one
