"""From the folders of parts to shards."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NoReturn

import pytest

from collidium.contracts.runner import RunnerRefused, RunnerUnavailable
from collidium_runners import outputs
from collidium_runners.outputs import MANIFEST, Shard, gather, has_tables, shards


def write(source: Path, part: int, *names: str) -> None:
    (source / str(part)).mkdir(parents=True, exist_ok=True)
    for name in names:
        (source / str(part) / name).write_text(f"{part}/{name}")


def test_parts_become_shards_in_their_order(tmp_path: Path) -> None:
    for part in range(11):
        write(tmp_path / "job", part, "particles.parquet", "tracker_hits.parquet", "log.txt")
    files = gather(tmp_path / "job", range(11), tmp_path / "out", 2**30)
    assert [file.name for file in files] == [
        f"{table}-{part:05d}-of-00011.parquet"
        for table in ("particles", "tracker_hits")
        for part in range(11)
    ]
    assert files[10].read_text() == "10/particles.parquet"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {file.name for file in files}


def test_one_part_gives_whole_tables(tmp_path: Path) -> None:
    write(tmp_path, 0, "particles.parquet")
    assert gather(tmp_path, range(1), tmp_path / "out", 2**30) == [tmp_path / "out" / "particles.parquet"]


def test_shards_of_a_part_are_numbered_anew() -> None:
    listing = ["hits-00000-of-00002.parquet", "hits-00001-of-00002.parquet"]
    assert shards({0: listing, 1: ["hits.parquet"]}) == [
        Shard(0, listing[0], "hits-00000-of-00003.parquet"),
        Shard(0, listing[1], "hits-00001-of-00003.parquet"),
        Shard(1, "hits.parquet", "hits-00002-of-00003.parquet"),
    ]


def test_a_second_call_writes_the_same_again(tmp_path: Path) -> None:
    write(tmp_path, 0, "particles.parquet")
    first = gather(tmp_path, range(1), tmp_path / "out", 2**30)
    assert gather(tmp_path, range(1), tmp_path / "out", 2**30) == first
    assert first[0].read_text() == "0/particles.parquet"


def test_a_missing_part_is_refused(tmp_path: Path) -> None:
    write(tmp_path, 0, "particles.parquet")
    with pytest.raises(RunnerRefused, match="output of part 1 is missing"):
        gather(tmp_path, range(2), tmp_path / "out", 2**30)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("second", [["hits.parquet"], ["particles.parquet", "hits.parquet"], [], ["a.txt"]])
def test_a_part_with_other_tables_is_refused(second: list[str]) -> None:
    with pytest.raises(RunnerRefused, match="part 1 wrote the tables"):
        shards({0: ["particles.parquet"], 1: second})


def test_a_part_without_tables_is_refused() -> None:
    with pytest.raises(RunnerRefused, match="part 0 wrote the tables none"):
        shards({0: ["log.txt"]})


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    write(tmp_path / "job", 0, "particles.parquet")
    (tmp_path / "job" / "0" / "hits.parquet").symlink_to(tmp_path / "secret")
    assert [file.name for file in gather(tmp_path / "job", range(1), tmp_path / "out", 2**30)] == [
        "particles.parquet"
    ]


@pytest.mark.parametrize("where", ["job", "job/0"])
def test_a_link_in_the_place_of_a_folder_is_refused(tmp_path: Path, where: str) -> None:
    """It could lead to any folder of the server, and to another user's tables."""
    write(tmp_path / "others", 0, "particles.parquet")
    (tmp_path / where).parent.mkdir(exist_ok=True)
    (tmp_path / where).symlink_to(tmp_path / "others" if where == "job" else tmp_path / "others" / "0")
    assert not has_tables(tmp_path / "job", 0)
    with pytest.raises(RunnerRefused, match="output of part 0 is missing"):
        gather(tmp_path / "job", range(1), tmp_path / "out", 2**30)
    assert not (tmp_path / "out").exists()


def listed(source: Path, part: int, **contents: str) -> None:
    """The manifest of a part; values are what its files were."""
    lines = [f"{sha256(text.encode()).hexdigest()}  ./{name}.parquet\n" for name, text in contents.items()]
    (source / str(part) / MANIFEST).write_text("".join(lines))


def test_files_are_as_the_manifests_of_parts_list_them(tmp_path: Path) -> None:
    for part in range(2):
        write(tmp_path / "job", part, "particles.parquet")
        listed(tmp_path / "job", part, particles=f"{part}/particles.parquet")
    assert len(gather(tmp_path / "job", range(2), tmp_path / "out", 2**30)) == 2
    (tmp_path / "job" / "1" / "particles.parquet").write_text("1/particles.parque")
    with pytest.raises(
        RunnerUnavailable, match=r"particles\.parquet of part 1 differs from what the part wrote"
    ):
        gather(tmp_path / "job", range(2), tmp_path / "out", 2**30)


@pytest.mark.parametrize("names", [["particles"], ["particles", "hits", "tracks"]])
def test_a_part_with_other_files_than_its_manifest_is_refused(tmp_path: Path, names: list[str]) -> None:
    write(tmp_path, 0, "particles.parquet", "hits.parquet")
    listed(tmp_path, 0, **dict.fromkeys(names, ""))
    with pytest.raises(RunnerRefused, match="part 0 has other files than its manifest"):
        gather(tmp_path, range(1), tmp_path / "out", 2**30)
    assert not (tmp_path / "out").exists()


def test_no_byte_is_copied_within_a_file_system(tmp_path: Path) -> None:
    write(tmp_path / "job", 0, "particles.parquet")
    (file,) = gather(tmp_path / "job", range(1), tmp_path / "out", 2**30)
    assert file.samefile(tmp_path / "job" / "0" / "particles.parquet")


def no_links(*_: object, **__: object) -> NoReturn:
    raise OSError(errno.EXDEV, "another file system")


def test_a_file_is_copied_where_it_cannot_be_linked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 0, "particles.parquet")
    monkeypatch.setattr(os, "link", no_links)
    (file,) = gather(tmp_path, range(1), tmp_path / "out", 2**30)
    assert (file.read_text(), file.stat().st_nlink) == ("0/particles.parquet", 1)


@pytest.mark.parametrize("link", [os.link, no_links])
def test_a_file_with_holes_is_not_gathered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: Callable[..., None]
) -> None:
    write(tmp_path, 0, "particles.parquet")
    os.truncate(tmp_path / "0" / "particles.parquet", 2 * 1024**3)
    monkeypatch.setattr(os, "link", link)
    with pytest.raises(RunnerRefused, match=r"particles\.parquet is sparse"):
        gather(tmp_path, range(1), tmp_path / "out", 2**40)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_part_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "MAX_FILES", 2)
    write(tmp_path, 0, "particles.parquet", "log.txt", "more.txt")
    with pytest.raises(RunnerRefused, match="part 0 wrote more than 2 files"):
        gather(tmp_path, range(1), tmp_path / "out", 2**30)


@pytest.mark.parametrize("link", [os.link, no_links])
def test_an_output_too_large_is_refused_before_any_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: Callable[..., None]
) -> None:
    monkeypatch.setattr(os, "link", link)
    write(tmp_path, 0, "hits.parquet", "particles.parquet", "tracks.parquet")
    (tmp_path / "0" / "tracks.parquet").write_bytes(b"x" * 100_000)
    with pytest.raises(RunnerRefused, match=r"the output has \d+ bytes; 90000 are allowed"):
        gather(tmp_path, range(1), tmp_path / "out", 90_000)
    assert not (tmp_path / "out").exists()


def test_a_file_that_grows_while_copied_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, 0, "hits.parquet", "particles.parquet")
    file = tmp_path / "0" / "particles.parquet"

    def grow_instead(name: str, *_: object, **__: object) -> None:
        if name == file.name:
            file.write_bytes(b"x" * 5 * 1024**2)
        no_links()

    monkeypatch.setattr(os, "link", grow_instead)
    with pytest.raises(RunnerRefused, match="are allowed"):
        gather(tmp_path, range(1), tmp_path / "out", 1024**2)
    assert sum(path.stat().st_size for path in (tmp_path / "out").iterdir()) <= 1024**2
