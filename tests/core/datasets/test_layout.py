"""Configs, tables and shards are found in each layout."""

from __future__ import annotations

import pytest

from collidium.datasets import layout
from collidium.errors import UnusableDataset

NEW = [
    "README.md",
    "data/ttbar_pu0_particles/train-00000-of-00002.parquet",
    "data/ttbar_pu0_particles/train-00001-of-00002.parquet",
    "data/ttbar_pu0_tracker_hits/train-00000-of-00001.parquet",
    "data/higgs_portal_pu200_tracks/train-00000-of-00001.parquet",
    "data/higgs_portal_pu200_tracks/notes.txt",
]
OLD = [
    "data/ttbar_pu200/tracker_hits-00000-of-00002.parquet",
    "data/ttbar_pu200/tracker_hits-00001-of-00002.parquet",
    "data/ttbar_pu200/particles.parquet",
    "data/ttbar_pu200/tracks/part-0.parquet",
    "data/ttbar_pu200/calo_hits_003.parquet",
]
PLAIN = ["tracker_hits.parquet", "particles.parquet", "README.md"]


def test_configs_of_both_layouts() -> None:
    assert layout.configs(NEW) == {
        "higgs_portal_pu200": ("tracks",),
        "ttbar_pu0": ("particles", "tracker_hits"),
    }
    assert layout.configs(OLD) == {"ttbar_pu200": ("calo_hits", "particles", "tracker_hits", "tracks")}
    assert layout.configs(PLAIN) == {"": ("particles", "tracker_hits")}


@pytest.mark.parametrize(
    ("paths", "table", "config", "expected"),
    [
        (NEW, "particles", "ttbar_pu0", NEW[1:3]),
        (NEW, "particles", None, NEW[1:3]),
        (NEW, "tracks", "higgs_portal_pu200", NEW[4:5]),
        ([path.removeprefix("data/") for path in NEW], "tracks", None, [NEW[4].removeprefix("data/")]),
        (OLD, "tracker_hits", "ttbar_pu200", OLD[:2]),
        (OLD, "particles", None, OLD[2:3]),
        (OLD, "tracks", None, OLD[3:4]),
        (OLD, "calo_hits", None, OLD[4:5]),
        (PLAIN, "tracker_hits", None, PLAIN[:1]),
        (PLAIN, "tracker_hits", "ttbar_pu0", PLAIN[:1]),
    ],
)
def test_shards_of_a_table(paths: list[str], table: str, config: str | None, expected: list[str]) -> None:
    assert layout.shards(reversed(paths), table, config) == expected


@pytest.mark.parametrize(
    ("paths", "table", "config", "message"),
    [
        (NEW, "calo_hits", None, "table calo_hits"),
        (NEW, "particles", "ttbar_pu200", "table particles"),
        (NEW, "hits", None, "table hits"),
        (NEW, "channels", None, r"table channels \(`collidium datasets mix` makes one"),
        ([*NEW, *OLD], "particles", None, "choose one of: ttbar_pu0, ttbar_pu200"),
    ],
)
def test_errors_name_what_is_missing_or_ambiguous(
    paths: list[str], table: str, config: str | None, message: str
) -> None:
    with pytest.raises(UnusableDataset, match=message):
        layout.shards(paths, table, config)
