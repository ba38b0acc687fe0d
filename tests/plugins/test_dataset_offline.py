"""Downloaded data without its hub: a full commit, ``HF_HUB_OFFLINE``, and what both do not allow."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd
from tests.hub import HubServer

from collidium import datasets
from collidium.datasets.cards import SPLITS
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import ConfigurationError, Unreachable
from collidium.hub import offline
from collidium.learning import EventStream, read_splits
from collidium.testing.server import isolated_environment, run_command

from .hub_proxy import HubProxy, hub_proxy

CARD = f"---\n{SPLITS}:\n  ttbar_pu0:\n    train: '0:2'\n---\n".encode()
NAMES = ["tracker_hits"]


@pytest.fixture(scope="module")
def repo(hub: HubServer) -> str:
    files = {
        f"data/ttbar_pu0_{path.stem}/train-00000-of-00001.parquet": path.read_bytes()
        for path in EVENTS_DIRECTORY.glob("*.parquet")
    }
    api = hub.api("olga")
    api.create_repo("olga/events", repo_type="dataset")
    operations = [CommitOperationAdd(path, content) for path, content in {**files, "README.md": CARD}.items()]
    api.create_commit("olga/events", operations, repo_type="dataset", commit_message="Events")
    return "olga/events"


@pytest.fixture
def proxy(hub: HubServer) -> Iterator[HubProxy]:
    with hub_proxy(hub.url) as proxy:
        yield proxy


@pytest.fixture
def downloaded(proxy: HubProxy, repo: str, tmp_path: Path) -> str:
    """The commit of events in the cache ``tmp_path``; the hub has forgotten who asked."""
    commit = datasets.download(repo, tables=NAMES, endpoint=proxy.url, cache=tmp_path).revision
    proxy.forget()
    return commit


READERS: dict[str, Callable[..., object]] = {
    "download": lambda repo, **access: datasets.download(repo, tables=NAMES, **access).shards,
    "load": lambda repo, **access: datasets.load(repo, None, NAMES, "0:2", **access),
    "tables": lambda repo, **access: datasets.list_tables(repo, tables=NAMES, **access),
    "splits": lambda repo, **access: read_splits(repo, **access),
    "stream": lambda repo, **access: list(EventStream(repo, "ttbar_pu0", NAMES[0], ["x"], "train", **access)),
}


@pytest.mark.parametrize("reader", READERS)
def test_a_full_commit_needs_no_hub(
    proxy: HubProxy, repo: str, downloaded: str, tmp_path: Path, reader: str
) -> None:
    assert READERS[reader](repo, endpoint=proxy.url, cache=tmp_path, revision=downloaded)
    assert proxy.asked == []


@pytest.mark.parametrize("reader", READERS)
def test_offline_reading_takes_the_last_commit(
    proxy: HubProxy,
    repo: str,
    downloaded: str,
    tmp_path: Path,
    reader: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert READERS[reader](repo, endpoint=proxy.url, cache=tmp_path)
    assert proxy.asked == []
    lines = {record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING}
    assert len(lines) == 1
    assert f"main of {proxy.url} is commit {downloaded[:12]}" in lines.pop()


def test_offline_reading_makes_no_request_for_what_is_missing(
    proxy: HubProxy, repo: str, downloaded: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "TRUE")
    access = {"endpoint": proxy.url, "cache": tmp_path}
    for missing in (
        lambda: datasets.download(repo, tables=["particles"], **access),
        lambda: datasets.download(repo, revision="v1", **access),
        lambda: datasets.download(repo, revision="0" * 40, **access),
        lambda: datasets.download("olga/other", **access),
        lambda: datasets.download(repo, endpoint=f"{proxy.url}/other", cache=tmp_path),
        lambda: datasets.list_repositories(endpoint=proxy.url),
    ):
        with pytest.raises(Unreachable, match=r"HF_HUB_OFFLINE forbids calls of the hub"):
            missing()
    assert proxy.asked == []


def test_a_hub_that_is_away_is_reported_with_advice(repo: str, own_hub: HubServer, tmp_path: Path) -> None:
    api = own_hub.api("olga")
    api.create_repo("olga/own", repo_type="dataset")
    content = (EVENTS_DIRECTORY / "tracks.parquet").read_bytes()
    path = "data/ttbar_pu0_tracks/train-00000-of-00001.parquet"
    api.upload_file(path_or_fileobj=content, path_in_repo=path, repo_id="olga/own", repo_type="dataset")
    output = tmp_path / "events"
    commit = datasets.download("olga/own", endpoint=own_hub.url, output=output).revision
    own_hub.end()
    again = datasets.download("olga/own", endpoint=own_hub.url, output=output, revision=commit)
    assert (again.directory, again.downloaded) == (output, ())
    with pytest.raises(Unreachable, match=f"HF_HUB_OFFLINE=1 uses commit {commit[:12]}"):
        datasets.download("olga/own", endpoint=own_hub.url, output=output)


def test_a_full_commit_is_completed_from_the_hub(
    proxy: HubProxy, repo: str, downloaded: str, tmp_path: Path
) -> None:
    done = datasets.download(repo, endpoint=proxy.url, cache=tmp_path, revision=downloaded)
    assert len(done.downloaded) == len([*EVENTS_DIRECTORY.glob("*.parquet")]) - 1
    assert {asked.path.partition("/resolve/")[1] for asked in proxy.asked} == {"/resolve/"}


@pytest.mark.parametrize("content", ["", "[]", '{"files": [{"type": "file", "path": "../x"}]}'])
def test_a_damaged_record_of_a_commit_is_read_again(
    proxy: HubProxy, repo: str, downloaded: str, tmp_path: Path, content: str
) -> None:
    (record,) = tmp_path.rglob(f"commits/{downloaded}.json")
    record.write_text(content)
    again = datasets.download(repo, tables=NAMES, endpoint=proxy.url, cache=tmp_path, revision=downloaded)
    assert (again.revision, again.downloaded) == (downloaded, ())
    assert proxy.files_asked() == []


@pytest.mark.parametrize(
    "command",
    [
        ("datasets", "publish", ".", "--repo", "olga/new"),
        ("publish-scores", "0" * 32),
        ("publish-scores", "0" * 32, "--dry-run"),
    ],
)
def test_writing_commands_refuse_offline_in_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    nowhere = {"PLATFORM_BACKEND": "http://127.0.0.1:1", "HF_TOKEN": "x", "HF_HUB_OFFLINE": "1"}
    done: subprocess.CompletedProcess[str] = run_command(
        command, isolated_environment(tmp_path, nowhere), tmp_path
    )
    assert (done.returncode != 0, done.stdout) == (True, "")
    assert "needs the hub" in done.stderr
    assert "unset HF_HUB_OFFLINE" in done.stderr
    assert done.stderr.count("\n") == 1


def test_processes_whose_hub_is_a_setting_ignore_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ConfigurationError):
        offline.require_online("this")
    offline.ignore()
    offline.require_online("this")
    assert os.environ["HF_HUB_OFFLINE"] == "0"
    code = "import os; os.environ['HF_HUB_OFFLINE'] = '1'; import huggingface_hub.constants as c;"
    code += "from collidium.hub import offline; offline.ignore(); print(c.HF_HUB_OFFLINE)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
