"""The public part of a benchmark reveals no truth, and the truth has the same events."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.core.datasets import events
from tests.core.datasets.events import CONFIG, jets_of, tables_of

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.datasets.publishing.blinding import in_public_order, without_truth
from collidium.datasets.publishing.preparing import Withheld, withhold
from collidium.datasets.publishing.survey import survey
from collidium.datasets.schemas import SCHEMAS
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import UnusableDataset

EVALUATION = EventRange(5, 8)
#: Reveals how an event was made; in no file may it be public.
NOTE = {b"seed": b"4711"}


def withheld(source: Path, directory: Path, evaluation: EventRange = EVALUATION) -> Withheld:
    (config,) = survey(source).configs
    return withhold(config, evaluation, public=directory / "public", truth=directory / "truth")


def split(tables: dict[str, pa.Table], directory: Path, evaluation: EventRange = EVALUATION) -> Withheld:
    return withheld(events.write(directory / "events", tables), directory, evaluation)


def split_single_shards(
    tables: dict[str, pa.Table], directory: Path, evaluation: EventRange = EVALUATION
) -> Withheld:
    return withheld(events.write_single_shards(directory / "events", tables), directory, evaluation)


@pytest.fixture(scope="module")
def tables() -> dict[str, pa.Table]:
    """Ten events, in which hits of different particles have the same position."""
    made = tables_of(range(10), hits=600)
    hits = made["tracker_hits"]
    for name in ("x", "y", "z", "volume_id", "layer_id", "surface_id", "detector"):
        lists = [[values[n - n % 4] for n in range(len(values))] for values in hits.column(name).to_pylist()]
        index = hits.schema.get_field_index(name)
        hits = hits.set_column(
            index, hits.schema.field(index), pa.array(lists, hits.schema.field(index).type)
        )
    return made | {"tracker_hits": hits, "jets": jets_of(made["calo_hits"])}


def changed(table: pa.Table, name: str, lists: list[Any]) -> pa.Table:
    index = table.schema.get_field_index(name)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(lists, field.type))


@pytest.fixture(scope="module")
def parts(tables: dict[str, pa.Table], tmp_path_factory: pytest.TempPathFactory) -> Withheld:
    return split(tables, tmp_path_factory.mktemp("withheld"))


def read(directory: Path, table: str, of: EventRange) -> pa.Table:
    blocks = Dataset(directory, CONFIG).read([table], of)
    return pa.concat_tables([tables[table] for _, tables in blocks])


def shards(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.parquet"))


def hits_of(directory: Path, event: int) -> dict[str, np.ndarray]:
    row = read(directory, "tracker_hits", EventRange(event, event + 1))
    return {
        name: np.array(row.column(name)[0].as_py())
        for name in row.column_names
        if row.column(name)[0].is_valid and name != "event_id"
    }


# -- what an attacker has -------------------------------------------------------------------------------


def test_withheld_events_have_only_detector_columns(parts: Withheld) -> None:
    left = {
        name: {
            column
            for column in table.column_names
            if column != "event_id" and table.column(column).null_count < table.num_rows
        }
        for name in SCHEMAS
        for table in [read(parts.public, name, EVALUATION)]
    }
    assert left == {
        "tracker_hits": {"x", "y", "z", "volume_id", "layer_id", "surface_id", "detector"},
        "calo_hits": {"detector", "x", "y", "z", "total_energy"},
        "tracks": {"track_id", "d0", "z0", "phi", "theta", "qop", "hit_ids"},
        "jets": {"jet_id", "pt", "eta", "phi", "mass", "constituents"},
        "particles": set(),
    }


def test_withheld_values_are_not_in_the_files(parts: Withheld, tables: dict[str, pa.Table]) -> None:
    """No eight bytes of a file, compressed or not, are the id of a closed event's particle."""
    closed = tables["particles"].slice(EVALUATION.start, len(EVALUATION))
    ids = {int(one) for one in pc.list_flatten(closed.column("particle_id")).to_pylist()}
    opened = tables["particles"].filter(
        pc.invert(pc.is_in(tables["particles"]["event_id"], closed["event_id"]))
    )
    ids -= {int(one) for one in pc.list_flatten(opened.column("particle_id")).to_pylist()}
    assert len(ids) > 50
    for path in shards(parts.public):
        with pq.ParquetFile(path) as file:
            plain = pa.BufferOutputStream()
            pq.write_table(file.read(), plain, compression="none", use_dictionary=False)
        for content in (path.read_bytes(), plain.getvalue().to_pybytes()):
            for shift in range(8):
                end = len(content) - (len(content) - shift) % 8
                assert not ids & set(np.frombuffer(content[shift:end], "<u8").tolist())


def test_metadata_and_statistics_reveal_nothing(parts: Withheld) -> None:
    for path in shards(parts.public):
        metadata = pq.read_metadata(path)
        assert set(metadata.metadata or {}) <= {b"ARROW:schema"}
        schema = pq.read_schema(path)
        assert not schema.metadata
        assert all(set(field.metadata or {}) <= {b"unit", b"PARQUET:field_id"} for field in schema)
        for number in range(metadata.num_row_groups):
            group = metadata.row_group(number)
            for index in range(group.num_columns):
                column = group.column(index)
                assert column.path_in_schema == "event_id" or not column.is_stats_set


def test_row_groups_do_not_mix_open_and_withheld_events(parts: Withheld) -> None:
    for path in shards(parts.public):
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                ids = file.read_row_group(number, ["event_id"]).column(0).to_pylist()
                assert len({EVALUATION.start <= event < EVALUATION.stop for event in ids}) == 1


def test_hits_are_sorted_by_public_values(parts: Withheld) -> None:
    names = ("volume_id", "layer_id", "surface_id", "detector", "x", "y", "z")
    for event in range(EVALUATION.start, EVALUATION.stop):
        hits = hits_of(parts.public, event)
        rows = list(zip(*(hits[name].tolist() for name in names), strict=True))
        assert rows == sorted(rows)


def test_the_order_of_equal_hits_reveals_nothing(parts: Withheld, tables: dict[str, pa.Table]) -> None:
    """As the simulation writes them, a hit of a pair has the smaller id of the two as a rule."""

    def rising(of: Iterator[dict[str, np.ndarray]]) -> float:
        pairs = [
            int(a) < int(b)
            for hits in of
            for (a, b), same in zip(
                pairwise(hits["particle_id"]), np.diff(hits["x"], append=np.nan)[:-1] == 0, strict=True
            )
            if same and a != b
        ]
        assert len(pairs) > 50
        return float(np.mean(pairs))

    original = (
        {name: np.array(tables["tracker_hits"].column(name)[event].as_py()) for name in ("x", "particle_id")}
        for event in range(EVALUATION.start, EVALUATION.stop)
    )
    published = (hits_of(parts.truth, event) for event in range(EVALUATION.start, EVALUATION.stop))
    assert rising(original) == 1.0
    assert 0.35 < rising(published) < 0.65


@pytest.mark.parametrize("table", ["tracker_hits", "calo_hits", "tracks", "jets"])
def test_positions_in_lists_do_not_correlate_with_particles(
    parts: Withheld, tables: dict[str, pa.Table], table: str
) -> None:
    columns = {"calo_hits": "contrib_particle_ids", "tracks": "majority_particle_id", "jets": "flavour"}
    column = columns.get(table, "particle_id")

    def correlation(made: pa.Table) -> float:
        found = []
        for lists in made.column(column).to_pylist():
            ids = [one[0] if isinstance(one, list) else one for one in lists]
            ranks = np.unique([one for one in ids if one], return_inverse=True)[1]
            found.append(abs(np.corrcoef(ranks, np.arange(len(ranks)))[0, 1]))
        return float(np.mean(found))

    closed = tables[table].slice(EVALUATION.start, len(EVALUATION))
    assert correlation(closed) > 0.9
    assert correlation(read(parts.truth, table, EVALUATION)) < 0.3


def test_ids_of_hits_and_tracks_are_their_positions(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    hits = tables["tracker_hits"]
    old_ids = [[7 * n + 3 for n in range(len(x))] for x in hits.column("x").to_pylist()]
    with_ids = hits.append_column("hit_id", pa.array(old_ids, pa.list_(pa.uint32())))
    named = tables["tracks"].column("hit_ids").to_pylist()
    renamed = [[[7 * n + 3 for n in ids] for ids in of] for of in named]
    tracks = changed(tables["tracks"], "hit_ids", renamed)
    made = {"tracker_hits": with_ids, "particles": tables["particles"], "tracks": tracks}
    parts = split_single_shards(made, tmp_path)
    for event in range(EVALUATION.start, EVALUATION.stop):
        hits_there = hits_of(parts.public, event)
        assert hits_there["hit_id"].tolist() == list(range(len(hits_there["x"])))
    closed = read(parts.public, "tracks", EVALUATION)
    for ids in closed.column("track_id").to_pylist():
        assert ids == list(range(len(ids)))
    owners_agree(read(parts.truth, "tracks", EVALUATION), parts.truth)


def owners_agree(tracks: pa.Table, truth: Path) -> None:
    """Every hit that a track names is of the track's particle: all of these tracks are right."""
    for event, of, lists in zip(
        tracks.column("event_id").to_pylist(),
        tracks.column("majority_particle_id").to_pylist(),
        tracks.column("hit_ids").to_pylist(),
        strict=True,
    ):
        owners = hits_of(truth, event)["particle_id"]
        assert len(lists) > 5
        for particle, hits in zip(of, lists, strict=True):
            assert set(owners[hits].tolist()) == {particle}


# -- what the others have -------------------------------------------------------------------------------


def test_tracks_refer_to_the_same_hits(parts: Withheld) -> None:
    owners_agree(read(parts.truth, "tracks", EVALUATION), parts.truth)
    public, truth = (read(where, "tracks", EVALUATION) for where in (parts.public, parts.truth))
    assert public.column("hit_ids").equals(truth.column("hit_ids"))


def test_jets_refer_to_the_same_deposits(parts: Withheld, tables: dict[str, pa.Table]) -> None:
    """By rising places, whatever the order of the deposits was."""

    def energies(jets: pa.Table, calo_hits: pa.Table) -> list[list[tuple[float, list[float]]]]:
        return [
            sorted((pt, sorted(deposits[place] for place in jet)) for pt, jet in zip(pts, of, strict=True))
            for pts, of, deposits in zip(
                jets.column("pt").to_pylist(),
                jets.column("constituents").to_pylist(),
                calo_hits.column("total_energy").to_pylist(),
                strict=True,
            )
        ]

    before = [tables[name].slice(EVALUATION.start, len(EVALUATION)) for name in ("jets", "calo_hits")]
    for where in (parts.public, parts.truth):
        jets, calo_hits = (read(where, name, EVALUATION) for name in ("jets", "calo_hits"))
        assert energies(jets, calo_hits) == energies(*before)
        assert all(jet == sorted(jet) for of in jets.column("constituents").to_pylist() for jet in of)
        for ids in jets.column("jet_id").to_pylist():
            assert ids == list(range(len(ids)))


def test_open_events_are_untouched(parts: Withheld, tables: dict[str, pa.Table]) -> None:
    for name, table in tables.items():
        for of in (EventRange(0, EVALUATION.start), EventRange(EVALUATION.stop, 10)):
            assert read(parts.public, name, of).equals(table.slice(of.start, len(of)))


def test_every_shard_has_the_schema_of_the_format(parts: Withheld) -> None:
    for directory in (parts.public, parts.truth):
        for path in shards(directory):
            table = path.parent.name.removeprefix(f"{CONFIG}_")
            schema = pq.read_schema(path)
            assert schema.equals(SCHEMAS[table])
            assert [field.metadata for field in schema] == [field.metadata for field in SCHEMAS[table]]
    assert [pq.read_metadata(path).num_rows for path in shards(parts.public)] == [4, 4, 2] * len(SCHEMAS)


def test_the_truth_has_the_same_values(parts: Withheld, tables: dict[str, pa.Table]) -> None:
    for name, table in tables.items():
        made, before = read(parts.truth, name, EVALUATION), table.slice(EVALUATION.start, len(EVALUATION))
        assert made.num_rows == len(EVALUATION)
        numbered = {"event_id", "track_id", "hit_ids", "jet_id", "constituents"}
        columns = [c for c in table.column_names if c not in numbered]
        for new, old in zip(
            made.select(columns).to_pylist(), before.select(columns).to_pylist(), strict=True
        ):
            assert rows_of(new) == rows_of(old)
    for column in ("x", "y", "z", "surface_id"):
        public, truth = (read(p, "tracker_hits", EVALUATION) for p in (parts.public, parts.truth))
        assert public.column(column).equals(truth.column(column))


def rows_of(event: dict[str, list[Any]]) -> list[str]:
    return sorted(map(repr, zip(*event.values(), strict=True)))


def test_withholding_is_reproducible(tmp_path: Path, parts: Withheld, tables: dict[str, pa.Table]) -> None:
    again = withheld(events.write(tmp_path / "events", tables, events_per_shard=3), tmp_path)
    for name in tables:
        assert read(again.truth, name, EVALUATION).equals(read(parts.truth, name, EVALUATION))
    same = split(tables, tmp_path / "same")
    for old, new in zip(shards(parts.public), shards(same.public), strict=True):
        assert old.read_bytes() == new.read_bytes()


def test_unknown_columns_are_withheld(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    hits = tables["tracker_hits"]
    barcodes = hits.column("particle_id")
    made = {
        "tracker_hits": hits.append_column("barcode", barcodes).append_column("weight", hits["x"]),
        "vertices": tables["particles"].select(["event_id", "vx"]),
    }
    for name, table in made.items():
        noted = [field.with_metadata(NOTE) for field in table.schema]
        made[name] = table.cast(pa.schema(noted, metadata=NOTE))
    parts = split_single_shards(made, tmp_path)
    assert parts.columns["vertices"] == ("vx",)
    closed = read(parts.public, "tracker_hits", EVALUATION)
    assert closed.column("barcode").null_count == closed.column("weight").null_count == len(EVALUATION)
    assert read(parts.public, "vertices", EVALUATION).column("vx").null_count == len(EVALUATION)
    for path in shards(parts.public):
        assert b"4711" not in path.read_bytes()
        assert not pq.read_schema(path).metadata
        assert not any(b"seed" in (field.metadata or {}) for field in pq.read_schema(path))


def test_position_alias_is_public_unless_a_better_one_exists(tmp_path: Path) -> None:
    parts = split_real(tmp_path, {"x": "tx", "y": "ty", "z": "tz"})
    closed = read(parts.public, "tracker_hits", EventRange(3, 5))
    assert closed.column("x").null_count == 0
    both = pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet")
    both = both.append_column("tx", both["x"])
    parts = split_real(tmp_path / "both", {}, tracker_hits=both)
    assert "tx" not in read(parts.public, "tracker_hits", EventRange(3, 5)).column_names


def split_real(directory: Path, names: dict[str, str], **tables: pa.Table) -> Withheld:
    """The five real events, with other names of columns."""
    real = {
        name: pq.read_table(EVENTS_DIRECTORY / f"{name}.parquet")
        for name in ("tracker_hits", "particles", "tracks")
    }
    renamed = {
        name: table.rename_columns([names.get(column, column) for column in table.column_names])
        for name, table in {**real, **tables}.items()
    }
    return split_single_shards(renamed, directory, EventRange(3, 5))


def test_real_events_keep_their_tracks(tmp_path: Path) -> None:
    """Their hits have ids with gaps, and tracks name them by these."""
    parts = split_real(tmp_path, {})
    old = pq.read_table(EVENTS_DIRECTORY / "tracks.parquet").slice(3)
    new = read(parts.truth, "tracks", EventRange(3, 5))
    hits = pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet").slice(3)
    for event in range(2):
        at = dict(zip(hits["hit_id"][event].as_py(), hits["x"][event].as_py(), strict=True))
        there = hits_of(parts.truth, 3 + event)["x"].tolist()
        before = [[at[hit] for hit in ids] for ids in old["hit_ids"][event].as_py()]
        after = [[there[hit] for hit in ids] for ids in new["hit_ids"][event].as_py()]
        assert sorted(after) == sorted(before)


# -- refused --------------------------------------------------------------------------------------------


def test_missing_events_cannot_be_withheld(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    with pytest.raises(UnusableDataset, match="lacks 2 of the 4 events 8:12"):
        split(tables, tmp_path, EventRange(8, 12))


def test_withheld_truth_cannot_be_withheld_again(tmp_path: Path, parts: Withheld) -> None:
    with pytest.raises(UnusableDataset, match="no truth to withhold"):
        withheld(parts.public, tmp_path)


def test_tracks_of_missing_hits_are_rejected(tmp_path: Path, tables: dict[str, pa.Table]) -> None:
    named = tables["tracks"].column("hit_ids").to_pylist()
    spoiled = changed(tables["tracks"], "hit_ids", [[[*ids, 10**6] for ids in of] for of in named])
    with pytest.raises(UnusableDataset, match="names hits that event 5 does not have"):
        split(tables | {"tracks": spoiled}, tmp_path)


def test_events_without_truth_can_be_put_in_public_order() -> None:
    """The display does so with jets of a benchmark: it refused events whose flavour is withheld."""
    jets = pq.read_table(EVENTS_DIRECTORY.with_name("jets") / "jets.parquet")
    ordered = in_public_order({"jets": without_truth("jets", jets)})["jets"]
    assert ordered["flavour"].null_count == ordered.num_rows == jets.num_rows
    whole = in_public_order({"jets": jets})["jets"]
    assert sorted(ordered["pt"][0].as_py()) == sorted(whole["pt"][0].as_py())
