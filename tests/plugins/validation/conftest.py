"""Events of the built-in pipeline from a gun: one bunch crossing of muons, photons and pions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collidium.contracts import FIELD_TESLA
from collidium.contracts.pipeline import TABLES
from collidium.datasets.schemas import SCHEMAS
from collidium.order import Variation

Gun = Callable[..., Path]

_MASS = {13: 0.10566, 22: 0.0, 211: 0.13957}


@pytest.fixture(scope="module")
def fired(tmp_path_factory: pytest.TempPathFactory) -> Gun:
    """Simulates, reconstructs and writes the gun's events anew, with constants as they are, or varied."""
    from collidium_plugins.acts_pipeline import files
    from collidium_plugins.acts_pipeline.detector import geometry, hadrons
    from collidium_plugins.acts_pipeline.events import GeneratedEvent, to_table
    from collidium_plugins.acts_pipeline.order import StageOrder
    from collidium_plugins.acts_pipeline.stages import GENERATED, phases

    detectors: dict[float, Any] = {}
    pool = cache(hadrons.ReactionPool)
    build = geometry.build

    def build_once(field: float = FIELD_TESLA, **slabs: Any) -> Any:
        return detectors.get(field) or detectors.setdefault(field, build(field=field, **slabs))

    def fire(**varied: float) -> Path:
        order = StageOrder("gun", 1, 0, 5, 0, tmp_path_factory.mktemp("gun"), Variation(**varied))
        order.folder(GENERATED)
        files.write(order.chunk(GENERATED, order.chunks()[0]), to_table([_event()], GeneratedEvent))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(geometry, "build", build_once)
            patch.setattr(hadrons, "ReactionPool", pool)
            for stage in ("simulate", "reconstruct", "write"):
                for phase in phases(stage, order):
                    for task in range(len(phase.sizes)):
                        phase.do(task)
        return order.work / TABLES

    return fire


def _event() -> Any:
    from collidium_plugins.acts_pipeline.events import GeneratedEvent, Particles

    random = np.random.default_rng(3)
    pdg_id = np.repeat([13, 22, 211], [240, 60, 20])
    number = len(pdg_id)
    widest = np.where(pdg_id == 13, 2.4, 0.9)
    eta, phi = random.uniform(-widest, widest), random.uniform(-np.pi, np.pi, number)
    pt = np.where(pdg_id == 13, random.uniform(2, 8, number), 10.0 / np.cosh(eta))
    mass = np.array([_MASS[code] for code in pdg_id.tolist()])
    columns = {
        "particle_id": np.arange(1, number + 1),
        "pdg_id": pdg_id,
        "mass": mass,
        "energy": np.sqrt((pt * np.cosh(eta)) ** 2 + mass**2),
        "charge": np.where(pdg_id == 22, 0.0, np.where(pdg_id == 13, -1.0, 1.0)),
        "px": pt * np.cos(phi),
        "py": pt * np.sin(phi),
        "pz": pt * np.sinh(eta),
        "vz": random.normal(0, 55.5, number),
        "primary": np.ones(number),
        "vertex_primary": np.ones(number),
        "parent_id": np.full(number, -1),
    }
    arrays = {
        name: np.asarray(columns.get(name, np.zeros(number))).astype(
            SCHEMAS["particles"].field(name).type.value_type.to_pandas_dtype()
        )
        for name in Particles.__slots__
    }
    return GeneratedEvent(0, Particles(**arrays))
