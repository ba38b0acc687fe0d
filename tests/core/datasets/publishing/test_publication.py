"""Publishing on a real hub: datasets are checked, published atomically, and never overwrite others."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tests.core.datasets import events
from tests.core.datasets.events import CONFIG, tables_of
from tests.hub import HubServer, hub, own_hub

from collidium.contracts.task import EventRange
from collidium.datasets import Dataset
from collidium.datasets.cards import MANIFEST
from collidium.datasets.publishing.preparing import Publication, Withholding
from collidium.datasets.publishing.publication import Published, publish
from collidium.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    Unauthenticated,
    Unreachable,
    UnusableDataset,
)
from collidium.hub import publishing
from collidium.hub.client import Hub

__all__ = ["hub", "own_hub"]

#: A manifest of ours, but for a range that is none.
BROKEN = json.dumps(
    {
        "made_by": "collidium datasets publish",
        "configs": {CONFIG: {"events": 1, "first_event": 0, "last_event": 0, "files": [], "opened": ["9:1"]}},
    }
).encode()
TABLES = ("calo_hits", "particles", "tracker_hits", "tracks")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ten events of all tables in the hosted layout, in shards of four; no test writes to it."""
    return events.write(tmp_path_factory.mktemp("events"), tables_of(range(10)))


@pytest.fixture
def source(made: Path, tmp_path: Path) -> Path:
    return events.copy(made, tmp_path / "events")


@dataclass(frozen=True, slots=True)
class Ada:
    """A user with an account, and a repository for the test alone."""

    server: HubServer
    name: str

    @property
    def repo(self) -> str:
        return f"ada/{self.name}"

    @property
    def hub(self) -> Hub:
        return Hub(self.server.url, self.server.token("ada"))

    async def publish(self, directory: Path, **options: Any) -> Published:
        return await publish(Publication(directory, **{"repo": self.name} | options), self.hub)

    def files(self) -> set[str]:
        return set(self.server.api("ada").list_repo_files(self.repo, repo_type="dataset")) - {
            ".gitattributes"
        }

    def titles(self) -> list[str]:
        commits = self.server.api("ada").list_repo_commits(self.repo, repo_type="dataset")
        return [commit.title for commit in commits]

    def tags(self) -> dict[str, str]:
        refs = self.server.api("ada").list_repo_refs(self.repo, repo_type="dataset")
        return {tag.name: tag.target_commit for tag in refs.tags}

    def copy(self, directory: Path, revision: str | None = None) -> Path:
        api = self.server.api("ada")
        return Path(
            api.snapshot_download(self.repo, repo_type="dataset", local_dir=directory, revision=revision)
        )


def of_test(server: HubServer, request: pytest.FixtureRequest) -> Ada:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name.removeprefix("test_"))[:60]
    return Ada(server, "-".join(part for part in name.split("-") if part))


@pytest.fixture
def ada(hub: HubServer, request: pytest.FixtureRequest) -> Ada:
    return of_test(hub, request)


@pytest.fixture
def ada_alone(own_hub: HubServer, request: pytest.FixtureRequest) -> Ada:
    return of_test(own_hub, request)


def read_all(directory: Path, table: str, stop: int = 10) -> pa.Table:
    blocks = list(Dataset(directory, CONFIG).read([table], EventRange(0, stop)))
    return pa.concat_tables([tables[table] for _, tables in blocks])


# -- what is published ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["hosted", "older", "flat"])
async def test_every_layout_is_published_in_the_hosted_one(ada: Ada, tmp_path: Path, layout: str) -> None:
    tables = tables_of(range(10))
    writers: dict[str, Callable[..., Path]] = {
        "hosted": events.write,
        "older": events.write_older,
        "flat": events.write_flat,
    }
    directory = writers[layout](tmp_path / "mine", tables)
    published = await ada.publish(directory, config=CONFIG if layout == "flat" else None)
    assert published.url == f"{ada.server.url}/datasets/{ada.repo}"
    shards = {"hosted": 3, "older": 4, "flat": 1}[layout]
    names = {
        f"data/{CONFIG}_{table}/train-{number:05}-of-{count:05}.parquet"
        for table in TABLES
        for count in [2 if (layout, table) == ("flat", "tracker_hits") else shards]
        for number in range(count)
    }
    assert ada.files() == names | {"README.md", MANIFEST}
    copy = ada.copy(tmp_path / "copy", published.revision)
    for name, table in tables.items():
        assert read_all(copy, name).equals(table)
        first = copy / "data" / f"{CONFIG}_{name}" / "train-00000-of-"
        (path,) = first.parent.glob(f"{first.name}*")
        assert pq.read_table(path).column("event_id")[0].as_py() == 0, "shards are in the order of events"


async def test_a_repository_has_shards_card_and_manifest(ada: Ada, source: Path, tmp_path: Path) -> None:
    await ada.publish(source)
    copy = ada.copy(tmp_path / "copy")
    for path in source.rglob("*.parquet"):
        assert (copy / path.relative_to(source)).read_bytes() == path.read_bytes()

    (config,) = json.loads((copy / MANIFEST).read_text())["configs"].values()
    assert (config["events"], config["first_event"], config["last_event"]) == (10, 0, 9)
    assert {file["path"] for file in config["files"]} == ada.files() - {"README.md", MANIFEST}
    assert sum(file["rows"] for file in config["files"]) == 4 * 10

    info = ada.server.api(None).dataset_info(ada.repo)
    assert {"collidium", "particle-physics", "ttbar", "license:cc-by-4.0"} <= set(info.tags or [])
    text = (copy / "README.md").read_text()
    matter = yaml.safe_load(text.split("---\n")[1])
    assert matter["configs"] == [
        {
            "config_name": f"{CONFIG}_{table}",
            "data_files": [{"split": "train", "path": f"data/{CONFIG}_{table}/*.parquet"}],
        }
        for table in TABLES
    ]
    assert matter["size_categories"] == ["n<1K"]
    assert f'load_dataset("{ada.repo}", "{CONFIG}_calo_hits", split="train")' in text


async def test_the_publishers_card_keeps_its_content(ada: Ada, source: Path, tmp_path: Path) -> None:
    (source / "README.md").write_text(
        "---\nlicense: mit\npretty_name: Mine\ntags: [seed-42]\nconfigs: []\n---\n\n"
        "# My events\n\nSeed: 42.\n"
    )
    await ada.publish(source)
    _, matter, body = (ada.copy(tmp_path / "copy") / "README.md").read_text().split("---\n", 2)
    card = yaml.safe_load(matter)
    assert (card["license"], card["pretty_name"]) == ("mit", "Mine")
    assert {"collidium", "seed-42", "ttbar"} <= set(card["tags"])
    assert len(card["configs"]) == 4
    assert body == "\n# My events\n\nSeed: 42.\n"


async def test_a_card_with_the_seed_is_not_published(ada: Ada, source: Path, tmp_path: Path) -> None:
    """Who knows the seed can make the closed events again; a card that is given for it is published."""
    (source / "README.md").write_text("# Made with seed 4711\n")
    withholding = Withholding(EventRange(6, 8), tmp_path / "truth")
    published = await ada.publish(source, withholding=withholding)
    assert len(published.notes) == 1
    text = (ada.copy(tmp_path / "copy") / "README.md").read_text()
    assert "4711" not in text
    assert "| tracker\\_hits | true\\_x, true\\_y, true\\_z, time, particle\\_id |" in text
    (tmp_path / "card.md").write_text("The seed is drawn by lot.\n")
    published = await ada.publish(source, withholding=withholding, card=tmp_path / "card.md")
    assert published.notes == []
    text = (ada.copy(tmp_path / "again") / "README.md").read_text()
    assert text.endswith("---\n\nThe seed is drawn by lot.\n")


async def test_published_truth_cannot_be_withheld(ada: Ada, source: Path, tmp_path: Path) -> None:
    await ada.publish(source)
    withholding = Withholding(EventRange(6, 8), tmp_path / "truth")
    with pytest.raises(Conflict, match="cannot be withheld any more"):
        await ada.publish(source, withholding=withholding)
    closed = replace(ada, name="closed-from-the-first")
    await closed.publish(source, withholding=withholding)
    with pytest.raises(Conflict, match="would be published: add"):
        await closed.publish(source)
    assert len(closed.titles()) == 2


async def test_truth_of_other_events_is_never_replaced(ada: Ada, source: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth"
    options = {"withholding": Withholding(EventRange(6, 8), truth)}
    await ada.publish(source, **options)
    before = {path: path.read_bytes() for path in truth.rglob("*.parquet")}
    assert not (await ada.publish(source, **options)).changed
    for other in ({"withholding": Withholding(EventRange(5, 8), truth)}, options):
        if other is options:
            events.write(source, tables_of(range(10), seed=7))
        with pytest.raises(InvalidInput, match="holds the truth of other events"):
            await ada.publish(source, **other)
    assert {path: path.read_bytes() for path in truth.rglob("*.parquet")} == before
    assert {path.name for path in tmp_path.iterdir()} == {"events", "truth"}, "nothing else is left"
    assert ada.titles().count(f"Publish {CONFIG}") == 1


async def test_progress_is_reported_in_bytes(ada: Ada, source: Path) -> None:
    progress: dict[str, list[tuple[int, int]]] = {}
    await publish(
        Publication(source, ada.name),
        ada.hub,
        lambda step, done, total: progress.setdefault(step, []).append((done, total)),
    )
    size = sum(path.stat().st_size for path in source.rglob("*.parquet"))
    assert list(progress) == ["checking", "sending"]
    for steps in progress.values():
        assert steps[-1] == (size, size)
        assert len(steps) > 3


# -- again ----------------------------------------------------------------------------------------------


async def test_publishing_again_makes_no_commit(ada: Ada, source: Path) -> None:
    first = await ada.publish(source, tag="v1")
    assert first.changed
    again = await ada.publish(source, tag="v1")
    assert (again.revision, again.changed) == (first.revision, False)
    assert ada.titles().count(f"Publish {CONFIG}") == 1
    assert ada.tags() == {"v1": first.revision}


async def test_a_changed_dataset_is_a_new_version(ada: Ada, source: Path, tmp_path: Path) -> None:
    first = await ada.publish(source, tag="v1")
    for path in source.rglob("*.parquet"):
        path.unlink()
    tables = tables_of(range(6), seed=7)
    events.write(source, tables)
    second = await ada.publish(source, tag="v2", message="Fewer events")
    assert ada.titles()[0] == "Fewer events"
    assert ada.tags() == {"v1": first.revision, "v2": second.revision}
    assert not any("of-00003" in name for name in ada.files()), "what is no longer there is gone"
    new, old = ada.copy(tmp_path / "new", "v2"), ada.copy(tmp_path / "old", "v1")
    assert read_all(new, "tracks", 6).equals(tables["tracks"])
    assert read_all(old, "tracks").num_rows == 10


async def test_a_tag_is_never_moved(ada: Ada, source: Path) -> None:
    await ada.publish(source, tag="v1")
    (source / "README.md").write_text("Other words.\n")
    with pytest.raises(Conflict, match="has a tag v1 already"):
        await ada.publish(source, tag="v1")
    assert len(ada.titles()) == 2
    await ada.publish(source)
    with pytest.raises(Conflict, match="has a tag v1 already"):
        await ada.publish(source, tag="v1")


async def test_configs_share_a_repository(ada: Ada, source: Path, tmp_path: Path) -> None:
    await ada.publish(source)
    before = ada.files()
    particles = {"particles": tables_of(range(3))["particles"]}
    published = await ada.publish(events.write_single_shards(tmp_path / "others", particles, "zmumu_pu10"))
    assert ada.files() == before | {"data/zmumu_pu10_particles/train-00000-of-00001.parquet"}
    assert [config.name for config in published.configs] == ["zmumu_pu10"]
    text = (ada.copy(tmp_path / "copy") / "README.md").read_text()
    assert text.count("config_name: ttbar_pu0") == 4
    assert "zmumu" in yaml.safe_load(text.split("---\n")[1])["tags"]


async def test_a_single_config_can_be_published(ada: Ada, source: Path) -> None:
    events.write_single_shards(source, {"particles": tables_of(range(3))["particles"]}, "zmumu_pu10")
    await ada.publish(source, config="zmumu_pu10")
    assert ada.files() == {
        "README.md",
        MANIFEST,
        "data/zmumu_pu10_particles/train-00000-of-00001.parquet",
    }


async def test_added_files_stay_and_deleted_ones_are_restored(ada: Ada, source: Path) -> None:
    await ada.publish(source)
    api = ada.server.api("ada")
    lost = f"data/{CONFIG}_tracks/train-00001-of-00003.parquet"
    api.upload_file(path_or_fileobj=b"mine", path_in_repo="NOTES.md", repo_id=ada.repo, repo_type="dataset")
    assert not (await ada.publish(source)).changed
    api.delete_file(lost, ada.repo, repo_type="dataset")
    assert (await ada.publish(source)).changed
    assert {"NOTES.md", lost} <= ada.files()


async def test_concurrent_publishing_makes_one_commit(ada: Ada, source: Path) -> None:
    done = await asyncio.gather(*(ada.publish(source) for _ in range(4)), return_exceptions=True)
    assert ada.titles().count(f"Publish {CONFIG}") == 1
    for result in done:
        assert isinstance(result, Published | Conflict), result


# -- interrupted ----------------------------------------------------------------------------------------


async def test_a_killed_upload_is_resumed(
    ada_alone: Ada, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        """As a signal ends a process: nothing catches it."""

    async def killed(*_: object) -> str:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "commit", killed)
        with pytest.raises(Killed):
            await ada_alone.publish(source)
    assert ada_alone.files() == set()
    before = {path: path.stat().st_ino for path in ada_alone.server.blobs}
    assert len(before) >= 12
    assert (await ada_alone.publish(source)).changed
    assert {path: path.stat().st_ino for path in before} == before


async def test_a_commit_with_a_lost_response_is_found(
    ada: Ada, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = publishing.commit

    async def twice(*arguments: Any) -> str:
        await real(*arguments)
        return await real(*arguments)

    monkeypatch.setattr(publishing, "commit", twice)
    published = await ada.publish(source)
    assert ada.titles().count(f"Publish {CONFIG}") == 1
    assert ada.server.api("ada").dataset_info(ada.repo).sha == published.revision


async def test_a_concurrent_commit_is_never_overwritten(
    ada: Ada, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = publishing.commit

    async def late(target: Any, *arguments: Any) -> str:
        api = ada.server.api("ada")
        api.upload_file(
            path_or_fileobj=b"# Mine", path_in_repo="README.md", repo_id=ada.repo, repo_type="dataset"
        )
        return await real(target, *arguments)

    monkeypatch.setattr(publishing, "commit", late)
    with pytest.raises(Conflict, match="try again"):
        await ada.publish(source)
    assert ada.files() == {"README.md"}


async def test_a_file_changed_during_upload_is_not_published(
    ada: Ada, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = publishing.upload

    async def late(target: Any, name: str, path: Path, *more: Any) -> Any:
        path.write_bytes(path.read_bytes() + b"x")
        return await real(target, name, path, *more)

    monkeypatch.setattr(publishing, "upload", late)
    with pytest.raises(UnusableDataset, match="was changed while it was being published"):
        await ada.publish(source)
    assert ada.files() == set()


# -- refused --------------------------------------------------------------------------------------------


async def test_all_problems_are_reported_together(ada: Ada, source: Path, tmp_path: Path) -> None:
    shards = sorted(source.rglob("*.parquet"))
    by_table = {table: [p for p in shards if p.parent.name.endswith(f"_{table}")] for table in TABLES}
    torn = by_table["calo_hits"][1]
    torn.write_bytes(torn.read_bytes()[:-100])
    broken = by_table["calo_hits"][2]
    content = bytearray(broken.read_bytes())
    content[200:400] = bytes(200)
    broken.write_bytes(bytes(content))
    pq.write_table(pq.read_table(by_table["particles"][2]).slice(1), by_table["particles"][2])
    hits = pq.read_table(by_table["tracker_hits"][0])
    pq.write_table(hits.drop_columns(["event_id"]), by_table["tracker_hits"][0])
    tracks = pq.read_table(by_table["tracks"][1])
    uneven = tracks.set_column(1, "track_id", [[[1]] * 4]).append_column("more", tracks["phi"])
    pq.write_table(uneven, by_table["tracks"][1])
    pq.write_table(pq.read_table(by_table["tracks"][0]), by_table["tracks"][2])
    with pytest.raises(UnusableDataset, match="has 7 problems") as raised:
        await ada.publish(source)
    problems = {
        error["field"].rpartition("/data/")[2].removeprefix("data/"): error["detail"]
        for error in raised.value.errors
    }
    folder = f"{CONFIG}_"
    assert "cannot be read as parquet" in problems[f"{folder}calo_hits/train-00001-of-00003.parquet"]
    assert "cannot be read as parquet" in problems[f"{folder}calo_hits/train-00002-of-00003.parquet"]
    assert problems[f"{folder}tracker_hits/train-00000-of-00003.parquet"] == "has no column event_id"
    of_tracks = [e["detail"] for e in raised.value.errors if "tracks" in e["field"]]
    for number, words in enumerate(("different lengths", "other columns", "occur twice", "lacks 1 of")):
        assert words in of_tracks[number]
    assert not ada.server.api("ada").repo_exists(ada.repo, repo_type="dataset")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda table: table.slice(0, 3), "lacks 1 of the 10 events"),
        (lambda table: table.take([1, 0, 2, 3]), "ascending and unique"),
        (lambda table: table.drop_columns(["phi"]), "phi is missing"),
        (lambda table: table.append_column("phi2", table["phi"]), "phi2 is additional"),
        (
            lambda table: table.set_column(0, "event_id", [[0, 1, 2, 3]]),
            "events occur twice",
        ),
        (lambda table: table.set_column(0, "event_id", [[4, None, 6, 7]]), "has nulls"),
        (lambda table: table.set_column(0, "event_id", [["a", "b", "c", "d"]]), "must hold integers"),
    ],
)
async def test_inconsistent_tables_are_rejected(
    ada: Ada, source: Path, spoil: Callable[[pa.Table], pa.Table], message: str
) -> None:
    path = source / f"data/{CONFIG}_tracks/train-00001-of-00003.parquet"
    pq.write_table(spoil(pq.read_table(path)), path)
    with pytest.raises(UnusableDataset) as raised:
        await ada.publish(source)
    assert any(message in error["detail"] for error in raised.value.errors), raised.value.errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"config": "ttbar_pu200"}, "there is no config ttbar_pu200; there are ttbar_pu0"),
        ({"config": CONFIG, "directory": "flat/nowhere"}, "there is no directory"),
        ({"directory": "empty"}, "no parquet files"),
        ({"directory": "flat"}, "give its name, for example --config"),
        ({"directory": "flat", "config": "mine"}, "<channel>_pu<pileup>"),
    ],
)
async def test_unknown_and_ambiguous_configs_are_rejected(
    ada: Ada, source: Path, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    events.write_flat(tmp_path / "flat", tables_of(range(6)))
    (tmp_path / "empty").mkdir()
    directory = tmp_path / options["directory"] if "directory" in options else source
    with pytest.raises(UnusableDataset, match=message):
        await ada.publish(directory, config=options.get("config"))


@pytest.mark.parametrize(
    "options", [{"repo": "a/b/c"}, {"repo": ""}, {"repo": "-x"}, {"tag": "no tag"}, {"tag": ""}]
)
def test_invalid_names_are_rejected(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(InvalidInput, match="cannot be"):
        Publication(tmp_path, **{"repo": "mine"} | options)


@pytest.mark.parametrize("place", [".", "truth", "..", "data/truth"])
def test_truth_must_be_outside_of_the_published_directory(tmp_path: Path, place: str) -> None:
    with pytest.raises(InvalidInput, match="must not lie"):
        Publication(tmp_path, "mine", withholding=Withholding(EventRange(0, 1), tmp_path / place))


async def test_an_invalid_card_is_rejected(ada: Ada, source: Path) -> None:
    (source / "README.md").write_text("---\na: [\n---\n")
    with pytest.raises(UnusableDataset, match="front matter"):
        await ada.publish(source)
    (source / "README.md").write_bytes(b"\xff\xfe")
    with pytest.raises(UnusableDataset, match="UTF-8"):
        await ada.publish(source)


@pytest.mark.parametrize(
    "manifest", [None, b"{}", b"[", b'{"made_by": "collidium datasets publish"}', BROKEN]
)
async def test_other_repositories_are_never_modified(ada: Ada, source: Path, manifest: bytes | None) -> None:
    api = ada.server.api("ada")
    ada = replace(ada, name=f"{ada.name}-{len(manifest or b'')}")
    api.create_repo(ada.repo, repo_type="dataset")
    path = "model.bin" if manifest is None else MANIFEST
    api.upload_file(
        path_or_fileobj=manifest or b"weights", path_in_repo=path, repo_id=ada.repo, repo_type="dataset"
    )
    before = ada.titles()
    with pytest.raises(Conflict, match="was not published this way"):
        await ada.publish(source)
    assert ada.titles() == before


async def test_a_private_dataset(ada: Ada, source: Path) -> None:
    published = await ada.publish(source, private=True)
    assert published.private
    assert not ada.server.api("bob").repo_exists(ada.repo, repo_type="dataset")
    assert (await ada.publish(source)).private
    ada = replace(ada, name="a-public-dataset")
    await ada.publish(source)
    with pytest.raises(Conflict, match="was to be private"):
        await ada.publish(source, private=True)


async def test_publishing_needs_a_token_with_access(ada: Ada, source: Path) -> None:
    ada.server.token("bob")
    with pytest.raises(Forbidden) as raised:
        await ada.publish(source, repo="bob/events")
    assert ada.hub.token not in str(raised.value)
    with pytest.raises(Unauthenticated, match="does not accept the token"):
        await publish(Publication(source, ada.name), replace(ada.hub, token="hf_unknown"))
    with pytest.raises(Unauthenticated, match="needs your token"):
        await publish(Publication(source, ada.name), replace(ada.hub, token=""))


async def test_an_unreachable_hub_is_reported(ada_alone: Ada, source: Path) -> None:
    hub = ada_alone.hub
    ada_alone.server.end(signal.SIGKILL)
    with pytest.raises(Unreachable) as raised:
        await publish(Publication(source, ada_alone.name), hub)
    assert hub.token not in str(raised.value)


async def test_files_of_no_table_are_reported(ada: Ada, source: Path) -> None:
    (source / "predictions.parquet").write_bytes(b"PAR1")
    (source / ".collidium").mkdir()
    (source / ".collidium" / "work.parquet").write_bytes(b"PAR1")
    published = await ada.publish(source)
    assert published.left_out == ["predictions.parquet"]
    assert "predictions.parquet" not in ada.files()
