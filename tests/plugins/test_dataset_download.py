"""Downloads from a real hub, behind a proxy that counts requests and injects failures."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import ssl
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import trustme
from huggingface_hub import CommitOperationAdd, scan_cache_dir, try_to_load_from_cache
from tests.waiting import eventually

from collidium import datasets
from collidium.contracts.task import EventRange
from collidium.errors import (
    CollidiumError,
    Conflict,
    Forbidden,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unreachable,
    UnusableDataset,
    UpstreamError,
)
from collidium.hub import reader
from collidium.runtime.waiting import Backoff
from collidium.testing.processes import ending_with_parent, isolated_environment

from .conftest import HubServer
from .hub_proxy import HubProxy, hub_proxy

SHARDS, EVENTS = 6, 10
FOLDER = "data/ttbar_pu0_tracker_hits"


@pytest.fixture(autouse=True)
def on_a_machine_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PLATFORM_HUB_URL", "PLATFORM_BACKEND", "HF_ENDPOINT", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    quick = Backoff(first=timedelta(milliseconds=1), longest=timedelta(milliseconds=5))
    monkeypatch.setattr(reader, "BACKOFF", quick)


def shard(number: int) -> bytes:
    """Ten events of noise, some 170 kB."""
    rng = np.random.default_rng(number)
    events = range(number * EVENTS, (number + 1) * EVENTS)
    lists = pa.array([rng.normal(size=3000).astype(np.float32) for _ in events])
    buffer = io.BytesIO()
    pq.write_table(
        pa.table({"event_id": pa.array(events, pa.uint32()), "tx": lists}), buffer, row_group_size=5
    )
    return buffer.getvalue()


CONTENT = {f"{FOLDER}/train-{n:05}-of-{SHARDS:05}.parquet": shard(n) for n in range(SHARDS)}
PATHS = [*CONTENT]
SIZE = sum(map(len, CONTENT.values()))


def publish(hub: HubServer, repo: str, *, private: bool = False) -> str:
    api = hub.api("grace")
    api.create_repo(repo, repo_type="dataset", private=private)
    files = {**CONTENT, "README.md": b"---\ntags: [collidium]\n---\n", "data/ttbar_pu0_notes/notes.txt": b"x"}
    operations = [CommitOperationAdd(path, content) for path, content in files.items()]
    api.create_commit(repo, operations, repo_type="dataset", commit_message="Events")
    return repo


@pytest.fixture(scope="session")
def repo(hub: HubServer) -> str:
    return publish(hub, "grace/events")


@pytest.fixture(scope="session")
def private_repo(hub: HubServer) -> str:
    return publish(hub, "grace/private-events", private=True)


@pytest.fixture
def proxy(hub: HubServer) -> Iterator[HubProxy]:
    with hub_proxy(hub.url) as proxy:
        yield proxy


def assert_whole(directory: Path, paths: list[str] = PATHS) -> None:
    there = {str(path.relative_to(directory)) for path in directory.rglob("*.parquet")}
    assert there == set(paths)
    for path in paths:
        assert (directory / path).read_bytes() == CONTENT[path]


def leftovers(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*.part") if path.is_file()]


# -- what is sent ------------------------------------------------------------------------------------------


def test_a_download_is_cached(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    reports: list[tuple[int, int]] = []
    done = datasets.download(
        repo, endpoint=proxy.url, cache=tmp_path, progress=lambda come, total: reports.append((come, total))
    )
    assert_whole(done.directory)
    assert done.downloaded_bytes == proxy.bytes_sent == SIZE
    assert reports[-1] == (SIZE, SIZE)
    assert done.revision in done.directory.parts
    proxy.forget()
    again = datasets.download(repo, endpoint=proxy.url, cache=tmp_path)
    assert (again.directory, again.downloaded) == (done.directory, ())
    assert proxy.files_asked() == []
    assert leftovers(tmp_path) == []


def test_an_abandoned_part_is_removed(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    parts = cache / "a-hub-12345678" / "datasets--anna--old" / "parts"
    parts.mkdir(parents=True)
    for name in ("old.part", "young.part"):
        (parts / name).write_bytes(b"half")
    os.utime(parts / "old.part", (1000, 1000))
    datasets.download(repo, endpoint=proxy.url, cache=cache)
    assert [path.name for path in parts.iterdir()] == ["young.part"]


def test_huggingface_hub_finds_the_files_in_the_cache(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    done = datasets.download(repo, events="0:20", endpoint=proxy.url, cache=tmp_path)
    (cache,) = tmp_path.iterdir()
    found = try_to_load_from_cache(repo, PATHS[0], cache, done.revision, "dataset")
    assert isinstance(found, str)
    assert Path(found) == done.directory / PATHS[0]
    (scanned,) = scan_cache_dir(cache).repos
    assert (scanned.repo_id, scanned.nb_files) == (repo, 2)


def test_only_shards_with_the_events_are_sent_footers_once(
    proxy: HubProxy, repo: str, tmp_path: Path
) -> None:
    done = datasets.download(repo, "ttbar_pu0", "tracker_hits", "15:25", endpoint=proxy.url, cache=tmp_path)
    assert_whole(done.directory, PATHS[1:3])
    whole = [asked for asked in proxy.files_asked() if asked.byte_range is None]
    assert sorted(asked.path.rpartition("/")[2] for asked in whole) == [Path(p).name for p in PATHS[1:3]]
    tails = [asked for asked in proxy.files_asked() if asked.byte_range is not None]
    assert len(tails) == SHARDS
    proxy.forget()
    done = datasets.download(repo, "ttbar_pu0", "tracker_hits", "25:31", endpoint=proxy.url, cache=tmp_path)
    assert [asked.byte_range for asked in proxy.files_asked()] == [None]
    assert done.downloaded == (PATHS[3],)


def test_a_long_footer_is_read_completely(
    proxy: HubProxy, repo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collidium.datasets.catalogue.TAIL_BYTES", 16)
    (table,) = datasets.list_tables(repo, endpoint=proxy.url, cache=tmp_path)
    assert (table.config, table.table, table.events) == ("ttbar_pu0", "tracker_hits", SHARDS * EVENTS)
    assert (table.first_event, table.last_event) == (0, SHARDS * EVENTS - 1)
    assert table.columns == {"event_id": "uint32", "tx": "list<element: float>"}
    assert [entry.path for entry in table.shards] == PATHS
    assert table.bytes == SIZE
    assert proxy.bytes_sent < SIZE / 10


async def test_shards_without_statistics_are_fetched(hub: HubServer, tmp_path: Path) -> None:
    """Their footers do not record which events they have."""
    buffer = io.BytesIO()
    events = pa.table({"event_id": pa.array(range(10, 20), pa.uint32()), "tx": [[1.0]] * 10})
    pq.write_table(events, buffer, write_statistics=False)
    api = hub.api("grace")
    repo = api.create_repo("grace/no-statistics", repo_type="dataset").repo_id
    operations = [CommitOperationAdd(PATHS[0], CONTENT[PATHS[0]]), CommitOperationAdd(PATHS[1], buffer)]
    api.create_commit(repo, operations, repo_type="dataset", commit_message="Events")
    source = datasets.HubDataset(repo, hub.url)
    fetched = await datasets.fetch(source, ["tracker_hits"], tmp_path, events=EventRange(50, 60))
    assert fetched.downloaded == (PATHS[1],)
    with pytest.raises(UnusableDataset, match="lacks 10 of the 10 events 50:60"):
        list(datasets.Dataset(fetched.directory).read(["tracker_hits"], EventRange(50, 60)))


def test_a_hub_without_ranges_works(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    proxy.without_ranges = True
    proxy.cut["00002"] = 1
    done = datasets.download(repo, events="15:25", endpoint=proxy.url, cache=tmp_path)
    assert_whole(done.directory)


def test_events_are_loaded_from_a_hub_in_one_line(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    hits = datasets.load(repo, "ttbar_pu0", "tracker_hits", range(18, 22), endpoint=proxy.url, cache=tmp_path)
    assert hits.column_names == ["event_id", "x"]
    assert hits["event_id"].to_pylist() == [18, 19, 20, 21]
    whole = pa.concat_tables(pq.read_table(io.BytesIO(CONTENT[path])) for path in PATHS)
    assert hits["x"].to_pylist() == whole["tx"].slice(18, 4).to_pylist()


# -- what goes wrong on the way ----------------------------------------------------------------------------


def test_a_broken_connection_is_resumed(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    proxy.cut["00001"] = 2
    proxy.refuse = {"00003": [503, 429], "/tree/": [500]}
    done = datasets.download(repo, endpoint=proxy.url, cache=tmp_path, parallel=2)
    assert_whole(done.directory)
    ranges = [asked.byte_range for asked in proxy.files_asked() if "00001" in asked.path]
    assert ranges[0] is None
    assert len(ranges) == 3
    assert all(str(asked).startswith("bytes=") for asked in ranges[1:])
    assert proxy.bytes_sent == SIZE


def test_a_damaged_transfer_is_repeated(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    proxy.damage["00002"] = 1
    done = datasets.download(repo, endpoint=proxy.url, cache=tmp_path)
    assert_whole(done.directory)
    assert proxy.sent[Path(PATHS[2]).name] == 2 * len(CONTENT[PATHS[2]])


def test_a_shard_damaged_on_the_hub_is_reported(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    proxy.damage["00002"] = 99
    with pytest.raises(UnusableDataset, match=r"train-00002-of-00006.parquet of grace/events is damaged"):
        datasets.download(repo, endpoint=proxy.url, cache=tmp_path, parallel=1)
    assert proxy.sent[Path(PATHS[2]).name] == 2 * len(CONTENT[PATHS[2]])
    assert not [path for path in tmp_path.rglob("*00002*") if path.exists()]
    proxy.damage.clear()
    assert_whole(datasets.download(repo, endpoint=proxy.url, cache=tmp_path).directory)


def test_a_damaged_part_is_downloaded_again(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    directory = datasets.download(repo, events="0:10", endpoint=proxy.url, cache=tmp_path).directory
    whole = CONTENT[PATHS[2]]
    part = directory.parents[1] / "parts" / f"{hashlib.sha256(whole).hexdigest()}.part"
    part.write_bytes(b"x" + whole[1:50_000])
    proxy.forget()
    assert_whole(datasets.download(repo, endpoint=proxy.url, cache=tmp_path).directory)
    asked = [asked.byte_range for asked in proxy.files_asked() if "00002" in asked.path]
    assert asked == ["bytes=50000-", None]
    assert proxy.bytes_sent == SIZE - len(CONTENT[PATHS[0]]) + len(whole) - 50_000


def test_damage_in_the_cache_is_detected(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    directory = datasets.download(repo, endpoint=proxy.url, cache=tmp_path).directory
    short, changed = (directory / PATHS[0]).resolve(), (directory / PATHS[1]).resolve()
    short.write_bytes(b"PAR1")
    content = bytearray(changed.read_bytes())
    content[1000] ^= 1
    changed.write_bytes(content)
    proxy.forget()
    assert datasets.download(repo, endpoint=proxy.url, cache=tmp_path).downloaded == (PATHS[0],)
    assert datasets.download(repo, endpoint=proxy.url, cache=tmp_path, verify=True).downloaded == (PATHS[1],)
    assert_whole(directory)


def test_a_full_disk_is_reported_and_leaves_nothing_half_written(
    proxy: HubProxy, repo: str, tmp_path: Path
) -> None:
    """The limit on files of a process stands for a disk that takes no more."""
    program = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from collidium import datasets\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))\n"
        "try: datasets.download(sys.argv[1], endpoint=sys.argv[2], cache=Path(sys.argv[3]))\n"
        "except datasets.NoRoom as error: print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, repo, proxy.url, str(tmp_path)],
        env=isolated_environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "the disk is full; complete files are kept" in done.stdout
    assert leftovers(tmp_path) == []
    assert list(tmp_path.rglob("*.parquet")) == []
    assert_whole(datasets.download(repo, endpoint=proxy.url, cache=tmp_path).directory)


def test_a_download_larger_than_the_disk_is_not_started(
    proxy: HubProxy, repo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1000))
    with pytest.raises(datasets.NoRoom, match=r"the download has 1\.0 MB, and the disk has 1\.0 kB free"):
        datasets.download(repo, endpoint=proxy.url, cache=tmp_path)
    assert proxy.files_asked() == []


# -- killed, and several at once ---------------------------------------------------------------------------


def start(repo: str, proxy: HubProxy, directory: Path, *options: str) -> subprocess.Popen[str]:
    arguments = ["datasets", "download", repo, "--hub", proxy.url, "--json", *options]
    return subprocess.Popen(
        ending_with_parent([sys.executable, "-m", "collidium", *arguments]),
        env=isolated_environment(directory),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("option", ["--cache", "--output"])
def test_a_killed_download_is_resumed(proxy: HubProxy, repo: str, tmp_path: Path, option: str) -> None:
    to = tmp_path / "there"
    proxy.hold_after = SIZE * 6 // 10
    killed = start(repo, proxy, tmp_path, option, str(to), "--parallel", "3")
    assert proxy.held.wait(60)
    eventually(lambda: on_disk(to) == proxy.bytes_sent)
    killed.send_signal(signal.SIGKILL)
    killed.communicate(timeout=20)
    assert [path.name for path in to.rglob("*.parquet")], "some shards were whole"
    assert leftovers(to), "some were not"
    for path in to.rglob("*.parquet"):
        assert path.read_bytes() == CONTENT[f"{FOLDER}/{path.name}"]

    had = proxy.bytes_sent
    proxy.let_go()
    proxy.forget()
    second = start(repo, proxy, tmp_path, option, str(to))
    output, errors = second.communicate(timeout=60)
    assert second.returncode == 0, errors
    assert proxy.bytes_sent == SIZE - had
    assert any(asked.byte_range for asked in proxy.files_asked())
    assert_whole(Path(json.loads(output)["directory"]))
    assert leftovers(to) == []


def on_disk(directory: Path) -> int:
    """Bytes of content that are there, whole or not; -1 while a file is given its name."""
    files = [path for path in directory.rglob("*") if path.is_file() and not path.is_symlink()]
    try:
        known = [path for path in files if path.suffix == ".json" or path.parent.name == "refs"]
        return sum(path.stat().st_size for path in files if path not in known)
    except FileNotFoundError:
        return -1


def test_an_interrupted_download_ends_at_once(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    proxy.hold_after = SIZE // 2
    running = start(repo, proxy, tmp_path, "--cache", str(tmp_path / "cache"))
    assert proxy.held.wait(60)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=20)
    assert running.returncode == 130
    assert errors.strip().endswith("Interrupted.")


def test_two_processes_share_the_work(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    proxy.hold_after = SIZE // 3
    both = [start(repo, proxy, tmp_path, "--cache", str(cache), "--parallel", "2") for _ in range(2)]
    assert proxy.held.wait(60)
    eventually(lambda: sum("/revision/" in asked.path for asked in proxy.asked) == 2)
    proxy.let_go()
    ends = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], ends
    (directory,) = {json.loads(output)["directory"] for output, _ in ends}
    assert_whole(Path(directory))
    assert leftovers(cache) == []
    # What was on its way when the connections were cut comes once more, and nothing else.
    assert proxy.bytes_sent == SIZE


# -- a directory of the user's -----------------------------------------------------------------------------


def test_a_directory_holds_files_and_nothing_twice(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    to = tmp_path / "events"
    done = datasets.download(repo, events="0:20", endpoint=proxy.url, output=to)
    assert done.directory == to
    assert_whole(to, PATHS[:2])
    assert not any(path.is_symlink() for path in to.rglob("*"))
    assert len(datasets.download(repo, endpoint=proxy.url, output=to).downloaded) == SHARDS - 2
    assert datasets.load(to, tables="tracker_hits", events="0:60").num_rows == 60
    assert [entry.config for entry in datasets.list_configs(to)] == ["ttbar_pu0"]


def test_a_directory_with_another_commit_or_files_is_refused(
    proxy: HubProxy, repo: str, private_repo: str, hub: HubServer, tmp_path: Path
) -> None:
    to = tmp_path / "events"
    datasets.download(repo, events="0:20", endpoint=proxy.url, output=to)
    with pytest.raises(Conflict, match="holds grace/events at commit"):
        datasets.download(private_repo, endpoint=proxy.url, token=hub.token("grace"), output=to)
    own = tmp_path / "own" / PATHS[0]
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    with pytest.raises(Conflict, match="exists already with another content"):
        datasets.download(repo, endpoint=proxy.url, output=tmp_path / "own")
    assert own.read_text() == "mine"


def test_commits_share_what_did_not_change(hub: HubServer, proxy: HubProxy, tmp_path: Path) -> None:
    repo = publish(hub, "grace/changing-events")
    first = datasets.download(repo, endpoint=proxy.url, cache=tmp_path)
    changed = io.BytesIO(shard(99))
    hub.api("grace").upload_file(
        path_or_fileobj=changed, path_in_repo=PATHS[5], repo_id=repo, repo_type="dataset"
    )
    second = datasets.download(repo, endpoint=proxy.url, cache=tmp_path)
    assert second.revision != first.revision
    assert second.downloaded == (PATHS[5],)
    assert_whole(first.directory)
    assert (second.directory / PATHS[5]).read_bytes() == changed.getvalue()
    old = datasets.download(repo, endpoint=proxy.url, cache=tmp_path, revision=first.revision)
    assert (old.directory, old.downloaded) == (first.directory, ())


# -- tokens ------------------------------------------------------------------------------------------------


def test_a_private_repository_needs_the_token(
    proxy: HubProxy, hub: HubServer, private_repo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(NotFound, match="without a token; if it is private, log in"):
        datasets.download(private_repo, endpoint=proxy.url, cache=tmp_path)
    with pytest.raises(NotFound, match="or the owner of the token may not see it"):
        datasets.download(private_repo, endpoint=proxy.url, cache=tmp_path, token=hub.token("bob"))
    with pytest.raises(Unauthenticated, match="does not accept the token"):
        datasets.download(private_repo, endpoint=proxy.url, cache=tmp_path, token="hf_unknown")
    monkeypatch.setenv("HF_TOKEN", hub.token("grace"))
    assert_whole(datasets.download(private_repo, endpoint=proxy.url, cache=tmp_path).directory)


def test_a_token_goes_to_no_other_host(proxy: HubProxy, hub: HubServer, repo: str, tmp_path: Path) -> None:
    with hub_proxy(hub.url) as other:
        proxy.elsewhere = other.url.removesuffix("/hub")
        done = datasets.download(
            repo, events="0:20", endpoint=proxy.url, cache=tmp_path, token=hub.token("grace")
        )
        assert_whole(done.directory, PATHS[:2])
        assert other.files_asked()
        assert {asked.authorization for asked in other.asked} == {None}
    assert {asked.authorization for asked in proxy.asked} == {f"Bearer {hub.token('grace')}"}


@pytest.mark.parametrize(
    ("status", "code", "token", "error", "message"),
    [
        (403, "", None, Forbidden, "does not permit the owner of the token to read"),
        (404, "", None, NotFound, "there is no hub at"),
        (400, "", None, UpstreamError, "answered 400"),
        (200, "", None, UpstreamError, "no JSON"),
        (401, "GatedRepo", None, Unauthenticated, "is gated: ask its owners"),
        (403, "GatedRepo", None, Unauthenticated, "is gated: ask its owners"),
        (403, "GatedRepo", "hf_user", Forbidden, "the owner of the token has no access: ask its owners"),
    ],
)
def test_refusals_are_reported(
    proxy: HubProxy,
    repo: str,
    status: int,
    code: str,
    token: str | None,
    error: type[CollidiumError],
    message: str,
) -> None:
    proxy.refuse, proxy.refusal = {"/revision/": [status]}, {"X-Error-Code": code} if code else {}
    with pytest.raises(error, match=message) as raised:
        datasets.list_configs(repo, endpoint=proxy.url, token=token)
    assert proxy.url in raised.value.detail


# -- on the way --------------------------------------------------------------------------------------------


def test_a_proxy_of_the_environment_is_used(
    proxy: HubProxy, repo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy.url.removesuffix("/hub"))
    done = datasets.download(repo, endpoint="http://hub.example/hub", cache=tmp_path)
    assert_whole(done.directory)
    assert all(asked.path.startswith("http://hub.example/hub/") for asked in proxy.asked)


def test_a_proxy_is_not_for_this_machine(
    proxy: HubProxy, repo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert_whole(datasets.download(repo, endpoint=proxy.url, cache=tmp_path).directory)


def test_certificates_are_checked(
    hub: HubServer, repo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with hub_proxy(hub.url, context) as proxy:
        with pytest.raises(Unreachable, match="certificate"):
            datasets.download(repo, endpoint=proxy.url, cache=tmp_path)
        authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        assert_whole(datasets.download(repo, endpoint=proxy.url, cache=tmp_path).directory)


def test_endless_redirects_are_reported(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    proxy.elsewhere = proxy.url.removesuffix("/hub")
    with pytest.raises(Unreachable, match="redirects"):
        datasets.download(repo, endpoint=proxy.url, cache=tmp_path)


# -- what is not there -------------------------------------------------------------------------------------


def test_errors_list_what_exists(proxy: HubProxy, repo: str, tmp_path: Path) -> None:
    def download(*arguments: str) -> None:
        datasets.download(repo, *arguments, endpoint=proxy.url, cache=tmp_path)

    with pytest.raises(UnusableDataset, match="there is no config ttbar_pu200; there are: ttbar_pu0"):
        download("ttbar_pu200")
    with pytest.raises(UnusableDataset, match="table tracks in config ttbar_pu0; there are: tracker_hits"):
        download("ttbar_pu0", "tracks")
    with pytest.raises(
        UnusableDataset, match=r"events 55:70: 60:70 are missing \(available events: 0 to 59\)"
    ):
        download("ttbar_pu0", "tracker_hits", "55:70")
    with pytest.raises(InvalidInput, match="START:STOP"):
        download("ttbar_pu0", "tracker_hits", "7")
    with pytest.raises(NotFound, match="grace/absent"):
        datasets.download("grace/absent", endpoint=proxy.url)
    with pytest.raises(NotFound, match="no such revision"):
        datasets.download(repo, endpoint=proxy.url, revision="v9")
    with pytest.raises(NotFound, match="there is no hub at"):
        datasets.download(repo, endpoint=proxy.url.removesuffix("/hub"))
    with pytest.raises(Unreachable, match=r"cannot reach the hub http://127\.0\.0\.1:9:") as raised:
        datasets.download(repo, endpoint="http://127.0.0.1:9", token="hf_secret")
    assert "hf_secret" not in raised.value.detail
    assert proxy.bytes_sent < SIZE / 2
    assert not (tmp_path / "XDG_CACHE_HOME").exists()


def test_datasets_of_the_hub_are_found_by_their_tag(hub: HubServer, repo: str, private_repo: str) -> None:
    seen = {item["repo"]: item["private"] for item in datasets.list_repositories(endpoint=hub.url)}
    assert repo in seen
    assert private_repo not in seen
    own = datasets.list_repositories(endpoint=hub.url, token=hub.token("grace"))
    assert {item["repo"]: item["private"] for item in own}[private_repo] is True
