"""Events of a real hub's datasets, shown by a real server: by range requests, and without truth."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from huggingface_hub import HfApi
from tests.core.api.conftest import import_truth
from tests.core.datasets.events import CONFIG, jets_of, tables_of, write, write_older, write_single_shards

from collidium import plugins
from collidium.client import Client, DatasetEntry
from collidium.datasets import sample
from collidium.datasets.catalogue import TAIL_BYTES
from collidium.datasets.row_hashes import HASHED, hashes_of
from collidium.errors import Conflict, InvalidInput, NotFound, TooLarge, Unavailable, UpstreamError
from collidium.event_display import EventDisplay, HashesOf, RowHashes, StoredEvent, Wanted
from collidium.event_display import datasets as listing
from collidium.event_display.datasets import PublicDatasets
from collidium.event_display.decoding import Outline
from collidium.settings import load
from collidium.testing.server import ServerProcess
from collidium_plugins.local_hub import accounts
from collidium_plugins.local_hub.store import Store

from .conftest import HubServer
from .hub_proxy import HubProxy, hub_proxy

OWNER = "olga"
CARD = "---\ntags: [{tag}]\n---\n\n# Events\n"
#: None of them is among those that are evaluated.
EVENTS = range(20, 50)
TABLES = tables_of(EVENTS, hits=2500)
TABLES["jets"] = jets_of(TABLES["calo_hits"])


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """A hub that only this module knows, to be killed."""
    server = HubServer(tmp_path_factory.mktemp("shown") / "hub")
    yield server
    if server.process.poll() is None:
        server.end()


@pytest.fixture(scope="module")
def running(hub: HubServer) -> Iterator[HubProxy]:
    with hub_proxy(hub.url) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def server(running: HubProxy, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server whose hub is behind the proxy; it reads little, and decodes in little memory."""
    env = {
        "PLATFORM_HUB_URL": running.url,
        "PLATFORM_EVENT_READ_BYTES": str(4 * 1024**2),
        "PLATFORM_EVENT_BYTES": str(1024**2),
        "PLATFORM_SCORING_MEMORY_BYTES": str(256 * 1024**2),
    }
    with ServerProcess(tmp_path_factory.mktemp("server"), env=env) as server:
        import_truth(server)
        yield server


@pytest.fixture
def client(server: ServerProcess, proxy: HubProxy) -> Iterator[Client]:
    with Client(server.base_url, token="") as client:
        yield client


@pytest.fixture
def proxy(running: HubProxy) -> HubProxy:
    running.forget()
    return running


def upload(
    hub: HubServer, name: str, directory: Path, *, tag: str = "collidium", private: bool = False
) -> str:
    """A repository with what is in the directory."""
    return _upload(hub.api(OWNER), name, directory, tag=tag, private=private)


def _upload(api: HfApi, name: str, directory: Path, *, tag: str, private: bool = False) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "README.md").write_text(CARD.format(tag=tag))
    repo = str(api.create_repo(f"{OWNER}/{name}", repo_type="dataset", private=private).repo_id)
    api.upload_folder(repo_id=repo, repo_type="dataset", folder_path=str(directory))
    return repo


@pytest.fixture(scope="module")
def repo(hub: HubServer, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Thirty events of some 100 kB in shards of ten."""
    return upload(hub, "shown", write(tmp_path_factory.mktemp("events"), TABLES, events_per_shard=10))


def entry_of(client: Client, repo: str) -> DatasetEntry:
    (entry,) = client.datasets(repo=repo)
    return entry


def one_table(directory: Path, table: pa.Table, name: str = "tracker_hits", config: str = CONFIG) -> Path:
    """A dataset of one file."""
    place = directory / "data" / f"{config}_{name}"
    place.mkdir(parents=True)
    pq.write_table(table, place / "train-00000-of-00001.parquet")
    return directory


# -- what is there --------------------------------------------------------------------------------------


def test_a_dataset_is_listed_with_its_events(client: Client, repo: str) -> None:
    entry = entry_of(client, repo)
    assert (entry.config, entry.events, entry.first_event, entry.last_event) == (CONFIG, 30, 20, 49)
    assert set(entry.tables) == set(TABLES)
    assert len(entry.revision) == 40
    assert entry.bytes > 1_000_000
    assert entry.updated_at is not None
    assert client.datasets().items[0].repo == "sample"


def test_an_event_is_what_was_published(client: Client, repo: str) -> None:
    shown = client.event(CONFIG, 34, repo=repo).tables()
    row = EVENTS.index(34)
    for name, columns in {
        "tracker_hits": ("x", "particle_id", "layer_id", "detector"),
        "particles": ("px", "charge", "vertex_primary"),
        "tracks": ("qop", "hit_ids"),
        "calo_hits": ("total_energy",),
        "jets": ("pt", "constituents"),
    }.items():
        for column in columns:
            assert shown[name].column(column).to_pylist() == TABLES[name].column(column)[row].as_py()
    assert not {"true_x", "contrib_energies"} & {c for table in shown.values() for c in table.column_names}


def test_an_event_costs_a_few_ranges_of_its_row_group(client: Client, proxy: HubProxy, repo: str) -> None:
    hits = client.event(CONFIG, 47, repo=repo, tables=["tracker_hits"]).tables()["tracker_hits"]
    assert hits.num_rows == len(TABLES["tracker_hits"].column("x")[EVENTS.index(47)])
    asked = proxy.files_asked()
    assert all(request.byte_range for request in asked)
    assert not any(request.authorization for request in proxy.asked)
    # Two footers that lead to the shard, its columns on both sides of those not shown, and the columns that
    # are compared with those of scored events.
    assert len(asked) <= 5
    proxy.forget()
    client.event(CONFIG, 46, repo=repo, tables=["tracker_hits"])
    again = proxy.files_asked()
    assert 0 < len(again) <= 3
    # Columns that are shown and compared are read for both.
    assert proxy.bytes_sent < 1.05 * max(shard_sizes(proxy, repo))
    proxy.forget()
    client.event(CONFIG, 46, repo=repo, tables=["tracker_hits"])
    assert not proxy.files_asked()


def shard_sizes(proxy: HubProxy, repo: str) -> list[int]:
    tree = httpx.get(
        f"{proxy.behind}/api/datasets/{repo}/tree/main", params={"recursive": "true"}, trust_env=False
    )
    return [file["size"] for file in tree.json() if "tracker_hits" in file["path"] and file["type"] == "file"]


def test_concurrent_requests_of_an_event_read_it_once(client: Client, proxy: HubProxy, repo: str) -> None:
    client.event(CONFIG, 40, repo=repo, tables=["tracks"])
    proxy.forget()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: client.event(CONFIG, 41, repo=repo, tables=["tracks"]), range(8)))
    assert len({event.content for event in found}) == 1
    # The tracks, and the hits that are compared with those of scored events.
    assert sorted("tracks" in asked.path for asked in proxy.files_asked()) == [False, True]


def test_shards_in_disorder_are_found(client: Client, hub: HubServer, tmp_path: Path) -> None:
    hits_alone = {"tracker_hits": TABLES["tracker_hits"]}
    repo = upload(hub, "disorder", write_older(tmp_path / "older", hits_alone))
    hits = client.event(CONFIG, 22, repo=repo).tables()["tracker_hits"]
    assert hits.column("x").to_pylist() == TABLES["tracker_hits"].column("x")[2].as_py()


def test_an_older_revision_is_shown(client: Client, hub: HubServer, repo: str) -> None:
    revision = entry_of(client, repo).revision
    event = client.event(CONFIG, 21, repo=repo, revision=revision, tables=["tracks"])
    assert event == client.event(CONFIG, 21, repo=repo, tables=["tracks"])
    with pytest.raises(NotFound, match=r"no public dataset .* with a revision v9"):
        client.event(CONFIG, 21, repo=repo, revision="v9")


# -- what is refused ------------------------------------------------------------------------------------


def test_a_missing_event_is_reported_with_existing_ones(client: Client, repo: str) -> None:
    with pytest.raises(NotFound, match=r"has no event 50 \(there are 20 to 49\)"):
        client.event(CONFIG, 50, repo=repo)
    with pytest.raises(NotFound, match=f"has no config nothing; there are: {CONFIG}"):
        client.event("nothing", 20, repo=repo)


def test_an_ambiguous_config_is_a_conflict(client: Client, repo: str) -> None:
    assert len([entry for entry in client.datasets().items if entry.config == CONFIG]) > 1
    with pytest.raises(Conflict, match="several datasets") as caught:
        client.event(CONFIG, 20)
    assert {"field": "repo", "detail": repo} in caught.value.errors
    assert {"field": "repo", "detail": "sample"} in caught.value.errors


@pytest.mark.parametrize(("tag", "private"), [("another", False), ("collidium", True)])
def test_other_repositories_are_neither_listed_nor_opened(
    client: Client, proxy: HubProxy, hub: HubServer, tmp_path: Path, tag: str, private: bool
) -> None:
    name = f"hidden-{tag}-{private}".lower()
    repo = upload(hub, name, one_table(tmp_path / "events", TABLES["tracker_hits"]), tag=tag, private=private)
    assert client.datasets(repo=repo).items == ()
    with pytest.raises(NotFound):
        client.event(CONFIG, 20, repo=repo)
    # It may have a million files.
    assert [asked.path for asked in proxy.asked if f"{repo}/tree/" in asked.path] == []


def test_configs_with_invalid_names_are_not_listed(client: Client, hub: HubServer, tmp_path: Path) -> None:
    hits = TABLES["tracker_hits"].slice(0, 1)
    directory = one_table(tmp_path / "events", hits, config="good_pu0")
    repo = upload(hub, "names", one_table(directory, hits, config="bad & worse_pu0"))
    assert [entry.config for entry in client.datasets(repo=repo)] == ["good_pu0"]
    with pytest.raises(NotFound, match=r"there are: good_pu0$"):
        client.event("bad & worse_pu0", 20, repo=repo)


def test_the_number_of_footers_read_is_bounded(client: Client, hub: HubServer, tmp_path: Path) -> None:
    hits = TABLES["tracker_hits"].slice(0, 1).select(["event_id", "x"])
    directory = tmp_path / "events"
    for config in ("first_pu0", "second_pu0"):
        one_table(directory, hits, config=config)
        (path,) = (directory / "data" / f"{config}_tracker_hits").iterdir()
        for number in range(1, 300):
            path.with_name(f"train-{number:05}-of-00300.parquet").write_bytes(path.read_bytes())
    entries = client.datasets(repo=upload(hub, "many", directory))
    assert {entry.config: entry.events for entry in entries} == {"first_pu0": 300, "second_pu0": None}


def test_a_slow_list_omits_the_rest(hub: HubServer, repo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(PublicDatasets(hub.url, "collidium", Outline.of)) as datasets:
        with monkeypatch.context() as hasty:
            hasty.setattr(listing, "LISTING_SECONDS", 0)
            assert {entry.repo for entry in datasets.configs()} == {"sample"}
        assert {"sample", repo} <= {entry.repo for entry in datasets.configs()}


HITS = TABLES["tracker_hits"].slice(0, 3)
HOSTILE = {
    "text": HITS.set_column(
        HITS.column_names.index("x"), "x", pa.array([["1", "2"]] * 3, pa.list_(pa.string()))
    ),
    "lengths": HITS.set_column(HITS.column_names.index("x"), "x", pa.array([[1.0]] * 3)),
    "no-ids": HITS.drop_columns(["event_id"]),
    "text-ids": HITS.set_column(0, "event_id", pa.array(["20", "21", "22"])),
    "no-lists": pa.table({"event_id": [20, 21, 22], "x": [1.0, 2.0, 3.0]}),
    "twice": pa.table([HITS["event_id"], HITS["x"], HITS["x"]], names=["event_id", "x", "x"]),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_invalid_tables_are_rejected(client: Client, hub: HubServer, tmp_path: Path, kind: str) -> None:
    repo = upload(hub, f"hostile-{kind}", one_table(tmp_path / "events", HOSTILE[kind]))
    with pytest.raises((InvalidInput, NotFound)):
        client.event(CONFIG, 20, repo=repo)


@pytest.mark.parametrize("kind", ["empty", "garbage", "short", "pages"])
def test_damaged_files_are_rejected(client: Client, hub: HubServer, tmp_path: Path, kind: str) -> None:
    directory = one_table(tmp_path / "events", HITS)
    (path,) = directory.rglob("*.parquet")
    content = path.read_bytes()
    path.write_bytes(
        {
            "empty": b"",
            "garbage": b"PAR1" + b"\xff" * 4096 + (4000).to_bytes(4, "little") + b"PAR1",
            "short": content[-2000:],
            "pages": b"PAR1" + b"\xff" * 6000 + content[6004:],
        }[kind]
    )
    repo = upload(hub, f"damaged-{kind}", directory)
    assert entry_of(client, repo).config == CONFIG
    with pytest.raises((InvalidInput, NotFound)):
        client.event(CONFIG, 20, repo=repo)


def test_a_decompression_bomb_does_not_crash_the_server(
    client: Client, hub: HubServer, tmp_path: Path
) -> None:
    zeros = pa.array(np.zeros(90_000_000, np.float32))
    bomb = pa.table(
        {"event_id": [20], "x": pa.ListArray.from_arrays(pa.array([0, len(zeros)], pa.int32()), zeros)}
    )
    directory = one_table(tmp_path / "events", bomb)
    (path,) = directory.rglob("*.parquet")
    assert path.stat().st_size < 100_000
    repo = upload(hub, "bomb", directory)
    with pytest.raises(InvalidInput, match="exceeds the limits"):
        client.event(CONFIG, 20, repo=repo)
    assert client.health().status == "ok"


#: A footer whose row group has two columns, where the schema has one: pyarrow 26 ends the process over it.
DEADLY = (
    b"\x15\x02\x19,H\x06schema\x15\x02\x00\x15\x04%\x00\x18\x08event_id\x00\x16\x02\x19\x1c\x19,"
    + 2 * b"&\x00\x1c\x15\x04\x19\x15\x00\x19\x18\x08event_id\x15\x00\x16\x02\x16\x14\x16\x14&\x08\x00\x00"
    + b"\x16\xc8\x01\x16\x02\x00\x00"
)


def test_a_file_that_crashes_its_reader_crashes_no_server(
    client: Client, hub: HubServer, tmp_path: Path
) -> None:
    directory = one_table(tmp_path / "events", HITS)
    (path,) = directory.rglob("*.parquet")
    path.write_bytes(b"PAR1" + DEADLY + len(DEADLY).to_bytes(4, "little") + b"PAR1")
    repo = upload(hub, "deadly", directory)
    assert entry_of(client, repo).events is None
    with pytest.raises(InvalidInput, match=r"damaged|cannot be read"):
        client.event(CONFIG, 20, repo=repo)
    assert client.health().status == "ok"


def test_a_footer_bomb_is_rejected(client: Client, hub: HubServer, tmp_path: Path) -> None:
    names = ["event_id", *(f"c{number}" for number in range(1500))]
    directory = one_table(tmp_path / "events", HITS)
    (path,) = directory.rglob("*.parquet")
    pq.write_table(pa.table([pa.array(range(33))] * len(names), names=names), path, row_group_size=1)
    repo = upload(hub, "wide", directory)
    with pytest.raises(InvalidInput, match="too many columns"):
        client.event(CONFIG, 20, repo=repo)


def test_an_event_in_too_many_ranges_is_rejected(client: Client, hub: HubServer, tmp_path: Path) -> None:
    directory = one_table(tmp_path / "events", HITS)
    (path,) = directory.rglob("*.parquet")
    chance = pa.array(np.random.default_rng(2).integers(0, 2**40, 300 * 20_000))
    other = pa.FixedSizeListArray.from_arrays(chance, 20_000)
    table = pa.table([pa.array(range(300)), other], names=["event_id", "other"])
    pq.write_table(
        table, path, row_group_size=1, write_statistics=False, compression="none", use_dictionary=False
    )
    repo = upload(hub, "scattered", directory)
    with pytest.raises(TooLarge, match="in 300 byte ranges"):
        client.event(CONFIG, 20, repo=repo)


def test_a_too_large_event_is_rejected(
    client: Client, proxy: HubProxy, hub: HubServer, tmp_path: Path
) -> None:
    chance = np.random.default_rng(1).normal(size=400_000).astype(np.float32)
    lists = pa.ListArray.from_arrays(pa.array([0, len(chance)], pa.int32()), pa.array(chance))
    names = ("x", "y")
    repo = upload(
        hub,
        "large",
        one_table(tmp_path / "large", pa.table({"event_id": [20], **dict.fromkeys(names, lists)})),
    )
    proxy.forget()
    with pytest.raises(TooLarge, match="byte ranges of table tracker_hits, and the limit is"):
        client.event(CONFIG, 20, repo=repo)
    assert proxy.bytes_sent < 2 * TAIL_BYTES
    small = one_table(tmp_path / "x", pa.table({"event_id": [20], "x": lists}))
    repo = upload(hub, "large-to-send", small)
    with pytest.raises(TooLarge, match="the limit of the event display is"):
        client.event(CONFIG, 20, repo=repo)


TRUTH = {"particle_id", "majority_particle_id", "time", "flavour"}


def test_own_events_with_scored_numbers_keep_their_truth(
    client: Client, hub: HubServer, tmp_path: Path
) -> None:
    """As an order of the same config with another seed has; the task is scored on others of that number."""
    assert sample.CONFIG == CONFIG
    repo = upload(hub, "ordered", write(tmp_path / "events", tables_of(range(6), hits=400)))
    shown = client.event(CONFIG, 3, repo=repo).tables()
    assert "particle_id" in shown["tracker_hits"].column_names
    assert len(shown["particles"]) > 0
    assert b"withheld" not in (shown["tracker_hits"].schema.metadata or {})


def _scored(table: str) -> pa.Table:
    """A scored event of the package."""
    return pq.read_table(sample.DIRECTORY / f"{table}.parquet").slice(3, 1)


def _changed(table: pa.Table, places: Any) -> pa.Table:
    """The event with some of its rows, in an order."""
    columns = {name: table[name] for name in table.column_names}
    for name, column in columns.items():
        if pa.types.is_list(column.type):
            values = column[0].as_py()
            columns[name] = pa.array([[values[place] for place in places]], column.type)
    return pa.table(columns)


def test_copies_of_scored_events_show_no_truth(client: Client, hub: HubServer, tmp_path: Path) -> None:
    """Published again under another name, config and number, and with other rows."""
    hits = _scored("tracker_hits")
    count = len(hits["x"][0])
    order = np.random.default_rng(4).permutation(count)
    kinds = pa.schema(
        [(field.name, pa.list_(pa.float64()) if field.name in "xyz" else field.type) for field in hits.schema]
    )
    changed = {
        "copied": hits,
        "reordered": _changed(hits, order),
        "one removed": _changed(hits, range(1, count)),
        "half removed": _changed(hits, range(0, count, 2)),
        "first half": _changed(hits, range(count // 2)),
        "duplicated": _changed(hits, [*range(count), *range(count)]),
        "cast": hits.cast(kinds),
    }
    for name, table in changed.items():
        directory = tmp_path / name.replace(" ", "-")
        tables = {"tracker_hits": table, "particles": _scored("particles")}
        for kind, rows in tables.items():
            ids = pa.array([700], pa.uint32())
            tables[kind] = rows.set_column(rows.column_names.index("event_id"), "event_id", ids)
        repo = upload(hub, directory.name, write_single_shards(directory, tables, "mine_pu0"))
        shown = client.event("mine_pu0", 700, repo=repo).tables()
        assert not TRUTH & {column for one in shown.values() for column in one.column_names}, name
        assert shown["particles"].shape == (0, 0), name
        assert (shown["tracker_hits"].schema.metadata or {})[b"withheld"] == b"evaluated"
        alone = client.event("mine_pu0", 700, repo=repo, tables=["particles"])
        assert alone.tables()["particles"].shape == (0, 0), name
        assert b"px" not in client.event("mine_pu0", 700, repo=repo, file_format="phoenix").content


@pytest.fixture
async def display(hub: HubServer, tmp_path: Path) -> AsyncIterator[EventDisplay]:
    """The display of a server that reads little, to see what it hashes."""
    settings = load(data_dir=tmp_path / "data", hub_url=hub.url, event_read_bytes=1024**2)
    executor = plugins.load(()).executors(settings).get(settings.executor)
    display = EventDisplay(settings, executor)
    yield display
    await display.close()
    await executor.close()


@pytest.mark.parametrize(
    ("table", "why"),
    [
        *(("tracker_hits", why) for why in ("too large", "many shards", "garbage", "lengths")),
        ("calo_hits", "too large"),
    ],
)
async def test_other_tables_are_hashed_if_one_is_not_read(
    display: EventDisplay, hub: HubServer, tmp_path: Path, table: str, why: str
) -> None:
    """It makes no request of another table fail either."""
    tables = {name: TABLES[name].slice(0, 1) for name in HASHED}
    directory = write_single_shards(tmp_path / "events", tables)
    (path,) = (directory / "data" / f"{CONFIG}_{table}").iterdir()
    _make_unreadable(path, why)
    repo = upload(hub, f"unread-{table}-{why}".replace(" ", "-").replace("_", "-"), directory)
    found: list[RowHashes] = []

    async def withholds(_: StoredEvent, rows_of: HashesOf) -> bool:
        found.append(await rows_of(frozenset(HASHED)))
        return False

    assert (await display.event(Wanted(CONFIG, 20, repo, ("jets",)), withholds)).content
    (hashed,) = found
    assert hashed.unread == (table,)
    others = [hashes_of(name, rows)[0] for name, rows in tables.items() if name != table]
    assert np.array_equal(hashed.values, np.unique(np.concatenate(others)))


def _make_unreadable(path: Path, why: str) -> None:
    if why == "garbage":
        path.write_bytes(b"\xff" * 100)
    elif why == "lengths":
        hits = pq.read_table(path)
        pq.write_table(hits.set_column(hits.column_names.index("x"), "x", pa.array([[1.0]])), path)
    elif why == "too large":
        values = pa.array([np.random.default_rng(1).normal(size=100_000)])
        names = ("x", "y", "z", "total_energy")
        pq.write_table(pa.table({"event_id": [20], **dict.fromkeys(names, values)}), path)
    else:
        pq.write_table(pq.read_table(path).slice(0, 1), path, write_statistics=False)
        for number in range(1, 300):
            path.with_name(f"train-{number:05}-of-00300.parquet").write_bytes(path.read_bytes())
        path.rename(path.with_name("train-00000-of-00300.parquet"))


# -- when the hub is away -------------------------------------------------------------------------------


def test_a_transient_failure_is_retried(client: Client, proxy: HubProxy, repo: str) -> None:
    proxy.cut["tracks"] = 1
    assert client.event(CONFIG, 25, repo=repo, tables=["tracks"]).tables()["tracks"].num_rows > 0


def test_a_hub_without_ranges_is_reported(client: Client, proxy: HubProxy, repo: str) -> None:
    proxy.without_ranges = True
    try:
        with pytest.raises(UpstreamError, match="does not support range requests"):
            client.event(CONFIG, 26, repo=repo, tables=["tracks"])
    finally:
        proxy.without_ranges = False


def test_a_hub_that_is_killed_is_reported_until_it_is_back(
    client: Client, hub: HubServer, proxy: HubProxy, repo: str
) -> None:
    client.event(CONFIG, 27, repo=repo, tables=["tracks"])
    hub.end(signal.SIGKILL)
    try:
        with pytest.raises(Unavailable, match="does not respond"):
            client.event(CONFIG, 28, repo=repo, tables=["tracks"])
        # What was shown before still is, and so is the sample.
        client.event(CONFIG, 27, repo=repo, tables=["tracks"])
        client.event(sample.CONFIG, 1, repo="sample")
        assert client.datasets(repo="sample").items
    finally:
        hub.start()
    assert client.event(CONFIG, 28, repo=repo, tables=["tracks"]).content


# -- the hub of the server itself -----------------------------------------------------------------------


def test_a_server_of_one_process_reads_its_own_hub(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "server") as server:
        with closing(Store(server.data_dir / "hub")) as store, store.database.writing() as db:
            token = accounts.make_token(db, accounts.add(db, OWNER))
        events = write(tmp_path / "events", {"tracker_hits": TABLES["tracker_hits"]}, events_per_shard=5)
        api = HfApi(endpoint=f"{server.base_url}/hub", token=token)
        repo = _upload(api, "own", events, tag="collidium")
        with Client(server.base_url, token="") as client, ThreadPoolExecutor(12) as threads:
            assert entry_of(client, repo).events == 30
            found = list(threads.map(lambda number: client.event(CONFIG, number, repo=repo).tables(), EVENTS))
    assert [len(tables["tracker_hits"]) for tables in found] == [
        len(hits) for hits in TABLES["tracker_hits"].column("x")
    ]
