"""The modules of the tracker lie where hits of the full simulation say that they do."""

from __future__ import annotations

from importlib.resources import as_file, files

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from collidium_plugins.acts_pipeline.detector import layout, material

VOLUMES = {volume.volume_id: volume for system in layout.systems() for volume in system.volumes}
LONG_STRIPS = {28, 29, 30}
#: Hits come in single precision.
ROUNDING = 1e-3


@pytest.fixture(scope="module")
def real() -> dict[str, npt.NDArray[np.float64]]:
    """All tracker hits of five events of the Open Data Detector, simulated with Geant4."""
    with as_file(files("collidium.demo") / "data/odd-ttbar-pu0/tracker_hits.parquet") as path:
        table = pq.read_table(path)
    return {
        name: pc.list_flatten(table.column(name)).to_numpy().astype(np.float64)
        for name in ("x", "y", "z", "volume_id")
    }


def test_the_tracker_has_the_modules_of_the_open_data_detector() -> None:
    assert sum(len(layer.modules) for volume in VOLUMES.values() for layer in volume.layers) == 18_824


@pytest.mark.parametrize("volume_id", VOLUMES)
def test_every_real_hit_lies_on_a_module(real: dict[str, npt.NDArray[np.float64]], volume_id: int) -> None:
    modules = [module for layer in VOLUMES[volume_id].layers for module in layer.modules]
    centre, x, y = (np.array([getattr(module, name) for module in modules]) for name in ("centre", "x", "y"))
    widest = np.array([max(module.half_lengths[:-1]) for module in modules])
    longest = np.array([module.half_lengths[-1] for module in modules])
    there = real["volume_id"] == volume_id
    offset = np.stack([real[axis][there] for axis in "xyz"], axis=1)[:, None] - centre
    across, along = (offset * x).sum(axis=2), (offset * y).sum(axis=2)
    height = np.abs((offset * np.cross(x, y)).sum(axis=2))
    on = (height < ROUNDING) & (np.abs(across) < widest + ROUNDING) & (np.abs(along) < longest + ROUNDING)
    if volume_id in LONG_STRIPS:  # they do not measure along the strip: their hits lie in its middle
        on &= np.abs(along) < ROUNDING
    assert on.any(axis=1).all()


def test_layers_have_the_ids_of_the_open_data_detector() -> None:
    ids = {volume_id: [layer.layer_id for layer in volume.layers] for volume_id, volume in VOLUMES.items()}
    assert (ids[16], ids[18]) == ([4, 6, 8, 10, 12, 14, 16], [2, 4, 6, 8, 10, 12, 14])
    assert VOLUMES[16].layers[0].modules[0].centre[2] == pytest.approx(-1516, abs=1.0)
    assert ids[17] == [2, 4, 6, 8]
    assert ids[23] == ids[25] == ids[28] == ids[30] == [2, 4, 6, 8, 10, 12]


def test_mixing_keeps_what_a_particle_meets() -> None:
    slab = material.MODULES["24"]
    (entry,) = material.document({"24": slab})["surfaces"]
    mixed = entry["material"]["slab"]
    atoms = sum(1e-3 * part.density * mm / part.mass for part, mm in slab.items())
    thickness = mixed["thickness"]
    assert thickness / mixed["material"]["radiation_length"] == pytest.approx(
        material.radiation_lengths(slab)
    )
    assert thickness * mixed["material"]["molar_density"] == pytest.approx(atoms)
    assert 6 < mixed["material"]["atomic_number"] < 29
