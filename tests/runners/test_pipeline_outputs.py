"""From the folders of parts to shards."""

from __future__ import annotations

from pathlib import Path

import pytest

from collidium.contracts.runner import RunnerRefused
from collidium_runners.pipeline.outputs import Shard, gather, shards


def write(source: Path, part: int, *names: str) -> None:
    (source / str(part)).mkdir(parents=True, exist_ok=True)
    for name in names:
        (source / str(part) / name).write_text(f"{part}/{name}")


def test_parts_become_shards_in_their_order(tmp_path: Path) -> None:
    for part in range(11):
        write(tmp_path / "job", part, "particles.parquet", "tracker_hits.parquet", "log.txt")
    files = gather(tmp_path / "job", 11, tmp_path / "out")
    assert [file.name for file in files] == [
        f"{table}-{part:05d}-of-00011.parquet"
        for table in ("particles", "tracker_hits")
        for part in range(11)
    ]
    assert files[10].read_text() == "10/particles.parquet"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {file.name for file in files}


def test_one_part_gives_whole_tables(tmp_path: Path) -> None:
    write(tmp_path, 0, "particles.parquet")
    assert gather(tmp_path, 1, tmp_path / "out") == [tmp_path / "out" / "particles.parquet"]


def test_shards_of_a_part_are_numbered_anew() -> None:
    listing = ["hits-00000-of-00002.parquet", "hits-00001-of-00002.parquet"]
    assert shards([listing, ["hits.parquet"]]) == [
        Shard(0, listing[0], "hits-00000-of-00003.parquet"),
        Shard(0, listing[1], "hits-00001-of-00003.parquet"),
        Shard(1, "hits.parquet", "hits-00002-of-00003.parquet"),
    ]


def test_a_second_call_writes_the_same_again(tmp_path: Path) -> None:
    write(tmp_path, 0, "particles.parquet")
    first = gather(tmp_path, 1, tmp_path / "out")
    assert gather(tmp_path, 1, tmp_path / "out") == first
    assert first[0].read_text() == "0/particles.parquet"


def test_a_missing_part_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 0, "particles.parquet")
    with pytest.raises(RunnerRefused, match="output of part 1 of 2 is missing"):
        gather(tmp_path, 2, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("second", [["hits.parquet"], ["particles.parquet", "hits.parquet"], [], ["a.txt"]])
def test_a_part_with_other_tables_is_refused(second: list[str]) -> None:
    with pytest.raises(RunnerRefused, match="part 1 of 2 wrote the tables"):
        shards([["particles.parquet"], second])


def test_a_part_without_tables_is_refused() -> None:
    with pytest.raises(RunnerRefused, match="part 0 of 1 wrote the tables none"):
        shards([["log.txt"]])


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    write(tmp_path / "job", 0, "particles.parquet")
    (tmp_path / "job" / "0" / "hits.parquet").symlink_to(tmp_path / "secret")
    assert [file.name for file in gather(tmp_path / "job", 1, tmp_path / "out")] == ["particles.parquet"]
