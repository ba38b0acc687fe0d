"""A mix reveals no channels, and its truth has them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.datasets.events import tables_of, write_single_shards

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.datasets.publishing import mixing
from collidium.datasets.publishing.mixing import Mixed, Mixing, mix
from collidium.datasets.publishing.preparing import Publication, Withheld, Withholding, prepare, withhold
from collidium.datasets.publishing.survey import survey
from collidium.datasets.writing import write_dataset
from collidium.errors import InvalidInput, UnusableDataset
from collidium.testing.server import run_command

#: How many events each channel has, and how many hits one of its events: so that the truth is known here.
CHANNELS = {"ttbar": (14, 310), "zmumu": (9, 300), "zprime": (7, 320)}
CONFIG = "anomaly_pu0"
EVENTS = EventRange(90_000, 90_030)


def source(
    directory: Path, channel: str, events: int, hits: int, *, pileup: int = 0, **replaced: pa.Table
) -> Path:
    """A dataset of one channel, as a simulation leaves it: with notes in its files and a card."""
    tables = tables_of(range(events), hits=hits, seed=hits) | replaced
    noted = {name: table.replace_schema_metadata({"seed": "4711"}) for name, table in tables.items()}
    write_dataset(directory / channel, f"{channel}_pu{pileup}", [noted], events_per_shard=5)
    (directory / channel / "README.md").write_text(f"{channel} with seed 4711")
    return directory / channel


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("channels")
    return [source(directory, channel, *sizes) for channel, sizes in CHANNELS.items()]


@pytest.fixture(scope="module")
def mixed(sources: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Mixed:
    place = tmp_path_factory.mktemp("mixed") / "mix"
    return mix(Mixing(sources, CONFIG, place, first_event=EVENTS.start))


@pytest.fixture(scope="module")
def parts(mixed: Mixed, tmp_path_factory: pytest.TempPathFactory) -> Withheld:
    directory = tmp_path_factory.mktemp("withheld")
    (config,) = survey(mixed.directory).configs
    return withhold(config, EVENTS, public=directory / "public", truth=directory / "truth")


def read(directory: Path, table: str) -> pa.Table:
    return pa.concat_tables([tables[table] for _, tables in Dataset(directory, CONFIG).read([table], EVENTS)])


def channels_of(directory: Path) -> list[str]:
    """The channel of each event, in order."""
    return [name for (name,) in read(directory, "channels")["channel"].to_pylist()]


def hits_per_event(directory: Path) -> list[int]:
    return [len(hits) for hits in read(directory, "tracker_hits")["x"].to_pylist()]


# -- the mix --------------------------------------------------------------------------------------------


def test_a_mix_has_every_event_once_with_its_channel(mixed: Mixed) -> None:
    assert (mixed.events, mixed.channels) == (EVENTS, {name: size for name, (size, _) in CHANNELS.items()})
    expected = [CHANNELS[channel][1] for channel in channels_of(mixed.directory)]
    assert hits_per_event(mixed.directory) == expected
    assert len({repr(hits) for hits in read(mixed.directory, "tracker_hits")["x"].to_pylist()}) == len(EVENTS)


def test_mixed_tables_have_the_same_events_unchanged(mixed: Mixed, sources: list[Path]) -> None:
    """Every event of every table is one of the source's, value by value."""
    for name in ("particles", "tracker_hits", "calo_hits", "tracks"):
        rows = {
            repr(row)
            for directory, (events, _) in zip(sources, CHANNELS.values(), strict=True)
            for _, tables in Dataset(directory).read([name], EventRange(0, events))
            for row in tables[name].drop_columns("event_id").to_pylist()
        }
        assert {repr(row) for row in read(mixed.directory, name).drop_columns("event_id").to_pylist()} == rows
    particles, hits = (read(mixed.directory, name) for name in ("particles", "tracker_hits"))
    for ids, owners in zip(
        particles["particle_id"].to_pylist(), hits["particle_id"].to_pylist(), strict=True
    ):
        assert set(owners) <= {0, *ids}


def test_the_order_is_random(sources: list[Path], mixed: Mixed, tmp_path: Path) -> None:
    again, same, other = (
        channels_of(mix(Mixing(sources, CONFIG, tmp_path / name, EVENTS.start, seed)).directory)
        for name, seed in (("again", 1), ("same", 1), ("other", 2))
    )
    assert again == same
    assert len({tuple(order) for order in (again, other, channels_of(mixed.directory))}) == 3


def test_mixing_in_many_ranges_gives_the_same(
    sources: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In many files on the way it is the same mix."""
    whole = mix(Mixing(sources, CONFIG, tmp_path / "whole", EVENTS.start, seed=3)).directory
    monkeypatch.setattr(mixing, "RANGE_BYTES", 4096)
    parts = mix(Mixing(sources, CONFIG, tmp_path / "parts", EVENTS.start, seed=3)).directory
    files = sorted(path.relative_to(whole) for path in whole.rglob("*.parquet"))
    assert files == sorted(path.relative_to(parts) for path in parts.rglob("*.parquet"))
    for path in files:
        assert pq.read_table(whole / path).equals(pq.read_table(parts / path))


def test_only_the_owner_can_read_the_mix(mixed: Mixed) -> None:
    assert mixed.directory.stat().st_mode & 0o777 == 0o700
    assert [path.name for path in mixed.directory.parent.iterdir()] == ["mix"]


# -- what an attacker has -------------------------------------------------------------------------------


def test_only_the_truth_part_has_the_channels(parts: Withheld) -> None:
    assert read(parts.public, "channels")["channel"].null_count == len(EVENTS)
    assert hits_per_event(parts.truth) == [CHANNELS[name][1] for name in channels_of(parts.truth)]
    assert hits_per_event(parts.public) == hits_per_event(parts.truth)


def test_no_file_names_a_channel_or_a_seed(parts: Withheld) -> None:
    for path in parts.public.rglob("*"):
        assert not any(channel in path.name for channel in CHANNELS)
        if path.is_file():
            with pq.ParquetFile(path) as file:
                plain = pa.BufferOutputStream()
                pq.write_table(file.read(), plain, compression="none", use_dictionary=False)
                assert set(file.schema_arrow.metadata or {}) <= {b"ARROW:schema"}
            for content in (path.read_bytes(), plain.getvalue().to_pybytes()):
                assert not [word for word in (*CHANNELS, "4711") if word.encode() in content]


def test_all_tables_have_the_same_shards(parts: Withheld) -> None:
    cuts = {
        tuple(pq.read_metadata(path).num_rows for path in sorted(folder.iterdir()))
        for folder in (parts.public / "data").iterdir()
    }
    assert len(cuts) == 1


def test_ids_reveal_nothing(sources: list[Path], tmp_path: Path) -> None:
    """Over many mixes each channel's events have, on average, the middle of the ids."""
    made = [
        channels_of(mix(Mixing(sources, CONFIG, tmp_path / str(n), EVENTS.start)).directory)
        for n in range(12)
    ]
    for channel, (events, _) in CHANNELS.items():
        places = np.array([[n for n, name in enumerate(order) if name == channel] for order in made])
        spread = (len(EVENTS) ** 2 / 12 / (len(made) * events)) ** 0.5
        assert abs(places.mean() - (len(EVENTS) - 1) / 2) < 6 * spread


def test_a_mix_is_not_published_with_its_channels(mixed: Mixed, tmp_path: Path) -> None:
    advice = "add --withhold-truth 90000:90030"
    for withholding in (None, Withholding(EventRange(90_000, 90_029), tmp_path / "truth")):
        publication = Publication(mixed.directory, "mix", withholding=withholding)
        with pytest.raises(InvalidInput, match=advice):
            prepare(publication, tmp_path, lambda *_: None)


# -- what is refused ------------------------------------------------------------------------------------


def without(table: str, column: str) -> dict[str, pa.Table]:
    return {table: tables_of(range(3))[table].drop_columns(column)}


def test_differences_of_channels_are_reported_together(sources: list[Path], tmp_path: Path) -> None:
    hits = tables_of(range(3), hits=50)["tracker_hits"].drop_columns("layer_id")
    hits = hits.set_column(1, "x", hits["x"].cast(pa.list_(pa.float64()))).append_column("note", hits["y"])
    bad = tmp_path / "zee"
    tables = tables_of(range(3), hits=50) | {"tracker_hits": hits, "jets": hits, "channels": hits}
    del tables["calo_hits"]
    write_single_shards(bad, tables, "zee_pu40")
    with pytest.raises(UnusableDataset) as refused:
        mix(Mixing([*sources, sources[0], bad], CONFIG, tmp_path / "mix", first_event=2**32 - 5))
    problems = json.dumps([error["detail"] for error in refused.value.errors])
    for problem in (
        "ttbar: occurs more than once",
        "ids from 4294967291",
        "another pileup",
        "is a mix itself",
        "table calo_hits is only there",
        "table jets is only there",
        "column x is list<",
        "column layer_id is missing",
        "column note is",
    ):
        assert problem in problems
    assert not (tmp_path / "mix").exists()


def test_missing_values_are_rejected(sources: list[Path], tmp_path: Path) -> None:
    """A hole in one channel alone would reveal it; nothing is left of the mix."""
    hits = tables_of(range(3), hits=50)["tracker_hits"]
    place = hits.column_names.index("time")
    holes = pa.array([[None] * 50, [1.0] * 50, None], pa.list_(pa.float32()))
    bad = source(
        tmp_path, "zee", 3, 50, tracker_hits=hits.set_column(place, hits.schema.field("time"), holes)
    )
    with pytest.raises(UnusableDataset, match="values of time are missing"):
        mix(Mixing([*sources, bad], CONFIG, tmp_path / "mix"))
    assert [path.name for path in tmp_path.iterdir()] == ["zee"]


def test_an_interrupted_mix_leaves_nothing(sources: list[Path], tmp_path: Path) -> None:
    def interrupt(step: str, done: int, total: int) -> None:
        if step == "mixing" and done > 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mix(Mixing(sources, CONFIG, tmp_path / "mix"), interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_concurrently_created_output_is_kept(sources: list[Path], tmp_path: Path) -> None:
    def write_meanwhile(step: str, done: int, total: int) -> None:
        (tmp_path / "mix" / "theirs").mkdir(parents=True, exist_ok=True)

    with pytest.raises(InvalidInput, match="at the same time"):
        mix(Mixing(sources, CONFIG, tmp_path / "mix"), write_meanwhile)
    assert [path.name for path in tmp_path.rglob("*")] == ["mix", "theirs"]


@pytest.mark.parametrize("config", ["anomaly", "Anomaly_pu0", "../x_pu0", "anomaly_pu0 ", ""])
def test_an_invalid_name_is_rejected(config: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="anomaly_pu0"):
        Mixing([tmp_path], config, tmp_path / "mix")


def test_an_existing_output_is_never_replaced(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="exists already"):
        Mixing([tmp_path], CONFIG, tmp_path)
    with pytest.raises(InvalidInput, match="first event"):
        Mixing([tmp_path], CONFIG, tmp_path / "mix", first_event=-1)


# -- the command ----------------------------------------------------------------------------------------


def test_mix_command(sources: list[Path], tmp_path: Path) -> None:
    arguments = [
        *("datasets", "mix", *map(str, sources), "--config", CONFIG, "--output", str(tmp_path / "mix")),
        *("--first-event", "90000", "--json"),
    ]
    environment = {"PATH": "/usr/bin", "HOME": str(tmp_path)}
    done = run_command(arguments, environment, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "directory": str(tmp_path / "mix"),
        "config": CONFIG,
        "events": str(EVENTS),
        "channels": {name: events for name, (events, _) in CHANNELS.items()},
    }
    again = run_command(arguments, environment, tmp_path)
    assert again.returncode == 3
    assert "exists already" in again.stderr
