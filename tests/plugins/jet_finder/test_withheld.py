"""Jets of a benchmark's public part: they are made of its deposits, and of nothing more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.plugins.jet_finder.events import Particle, calo_hits, particles, scattered

from collidium.contracts.task import EventRange
from collidium.datasets.publishing.preparing import withhold
from collidium.datasets.publishing.survey import survey
from collidium.datasets.writing import write_dataset
from collidium_plugins.jet_finder.table import jets


def jets_of(table: pa.Table) -> list[list[Any]]:
    """The jets of each event, but for the flavour, whatever their order."""
    columns = ("pt", "eta", "phi", "mass", "constituents")
    return [sorted(zip(*(event[name] for name in columns), strict=True)) for event in table.to_pylist()]


def test_jets_found_again_in_public_data_are_the_same(tmp_path: Path) -> None:
    """To the last bit: so neither digits nor constituents know of the order in which cells were written."""
    random = np.random.default_rng(11)
    cells = calo_hits(*(scattered(random, 200, 5) for _ in range(6)))
    ones = particles(*([Particle(511, 30, 0, 0), Particle(421, 30, 1, 1)] for _ in range(6)))
    made = jets(cells, ones)
    tables = {"calo_hits": cells, "particles": ones, "jets": made}
    write_dataset(tmp_path / "events", "zee_pu0", [tables], events_per_shard=4)
    (config,) = survey(tmp_path / "events").configs
    parts = withhold(config, EventRange(2, 5), public=tmp_path / "public", truth=tmp_path / "truth")

    def read(directory: Path, name: str) -> pa.Table:
        return pa.concat_tables(map(pq.read_table, sorted((directory / f"data/zee_pu0_{name}").iterdir())))

    public = read(parts.public, "jets")
    assert public.column("flavour").null_count == 3
    assert jets_of(public) == jets_of(jets(read(parts.public, "calo_hits"), None))
    assert min(map(len, jets_of(public))) > 2
    closed = made.slice(2, 3).to_pylist()
    for before, after in zip(closed, read(parts.truth, "jets").to_pylist(), strict=True):
        assert sorted(zip(before["pt"], before["flavour"], strict=True)) == sorted(
            zip(after["pt"], after["flavour"], strict=True)
        )
