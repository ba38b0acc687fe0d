"""The local hub with ``huggingface_hub``, in this process."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import (
    CommitOperationAdd,
    CommitOperationCopy,
    CommitOperationDelete,
    HfApi,
    HfFileSystem,
    hf_hub_download,
    snapshot_download,
)
from huggingface_hub.errors import (
    BadRequestError,
    EntryNotFoundError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from .conftest import HubServer
from .hub_proxy import hub_proxy


@pytest.fixture
def ada(hub: HubServer) -> HfApi:
    return hub.api("ada")


@pytest.fixture
def anonymous(hub: HubServer) -> HfApi:
    return hub.api(None)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "weights.bin"
    path.write_bytes(os.urandom(20 * 1024**2))
    return path


def sha256(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


# -- repositories ------------------------------------------------------------------------------------------


def test_only_the_owner_writes(hub: HubServer, repo: str) -> None:
    grace = hub.api("grace")
    with pytest.raises(HfHubHTTPError, match="403"):
        grace.upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id=repo)
    with pytest.raises(HfHubHTTPError, match="403"):
        grace.delete_repo(repo)
    with pytest.raises(HfHubHTTPError, match="403"):
        grace.create_repo("ada/for-ada")
    with pytest.raises(HfHubHTTPError, match="403"):
        grace.create_branch(repo, branch="mine")
    assert grace.model_info(repo).author == "ada"


def test_a_private_repository_is_hidden_from_others(hub: HubServer, ada: HfApi, anonymous: HfApi) -> None:
    ada.create_repo("ada/secret", private=True)
    ada.upload_file(path_or_fileobj=b"x", path_in_repo="a/x.bin", repo_id="ada/secret")
    assert ada.model_info("ada/secret").private
    for other in (hub.api("grace"), anonymous):
        for call in (
            lambda api: api.model_info("ada/secret"),
            lambda api: api.list_repo_files("ada/secret"),
            lambda api: hf_hub_download("ada/secret", "a/x.bin", endpoint=hub.url, token=api.token),
        ):
            with pytest.raises(RepositoryNotFoundError):
                call(other)
        assert "ada/secret" not in [model.id for model in other.list_models()]
    assert "ada/secret" in [model.id for model in ada.list_models()]


# -- files -------------------------------------------------------------------------------------------------


def test_a_folder_is_uploaded_and_downloaded(
    hub: HubServer, ada: HfApi, repo: str, large: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "a" / "größe, 100%.txt").write_text("ü")
    (folder / "a" / "b" / "empty.parquet").touch()
    (folder / "a" / "b" / "hits.parquet").write_bytes(b"PAR1" * 100)
    large.rename(folder / "weights.bin")
    ada.upload_folder(folder_path=folder, repo_id=repo, path_in_repo="top")
    assert ada.list_repo_files(repo) == [
        "top/a/b/empty.parquet",
        "top/a/b/hits.parquet",
        "top/a/größe, 100%.txt",
        "top/weights.bin",
    ]
    lfs = {file.path for file in ada.list_repo_tree(repo, recursive=True) if getattr(file, "lfs", None)}
    assert lfs == {"top/a/b/hits.parquet", "top/weights.bin"}
    down = Path(snapshot_download(repo, endpoint=hub.url, local_dir=tmp_path / "down", token=False))
    for name in ("a/größe, 100%.txt", "a/b/empty.parquet", "a/b/hits.parquet", "weights.bin"):
        assert sha256(down / "top" / name) == sha256(folder / name)
    again = ada.upload_folder(folder_path=folder, repo_id=repo, path_in_repo="top")
    assert again.oid == ada.model_info(repo).sha
    assert len(ada.list_repo_commits(repo)) == 2


def test_a_broken_download_is_resumed(
    hub: HubServer, ada: HfApi, repo: str, large: Path, tmp_path: Path
) -> None:
    ada.upload_file(path_or_fileobj=large, path_in_repo="weights.bin", repo_id=repo)
    with hub_proxy(hub.url) as proxy, ThreadPoolExecutor(1) as thread:
        proxy.hold_after = 15_000_000
        options = {"endpoint": proxy.url, "cache_dir": tmp_path / "cache", "token": False}
        download = thread.submit(hf_hub_download, repo, "weights.bin", **options)
        assert proxy.held.wait(30)
        proxy.let_go()
        path = download.result()
    resumed = [asked.byte_range or "" for asked in proxy.files_asked()][-1]
    assert int(resumed.removeprefix("bytes=").removesuffix("-")) > 10_000_000
    assert sha256(path) == sha256(large)


def test_missing_repositories_revisions_and_files(
    hub: HubServer, ada: HfApi, anonymous: HfApi, repo: str, tmp_path: Path
) -> None:
    ada.upload_file(path_or_fileobj=b"x", path_in_repo="a/x", repo_id=repo)
    with pytest.raises(RepositoryNotFoundError):
        anonymous.model_info("ada/nowhere")
    with pytest.raises(RepositoryNotFoundError):
        ada.model_info("ada/nowhere")
    with pytest.raises(RevisionNotFoundError):
        ada.model_info(repo, revision="nowhere")
    for revision, path, error in [
        ("main", "nothing", EntryNotFoundError),
        ("main", "a", EntryNotFoundError),
        ("nowhere", "a/x", RevisionNotFoundError),
    ]:
        with pytest.raises(error):
            hf_hub_download(repo, path, revision=revision, endpoint=hub.url, cache_dir=tmp_path, token=False)
    with pytest.raises(EntryNotFoundError):
        list(ada.list_repo_tree(repo, "nothing"))
    assert ada.get_paths_info(repo, ["nothing", "a", "a/x"])[0].path == "a"
    assert not ada.file_exists(repo, "a/y")
    assert ada.file_exists(repo, "a/x")


# -- commits -----------------------------------------------------------------------------------------------


def test_a_commit_with_all_kinds_of_changes(ada: HfApi, repo: str, large: Path) -> None:
    files = {f"old/{number}.txt": b"%d" % number for number in range(3)}
    ada.create_commit(
        repo,
        [CommitOperationAdd(name, content) for name, content in files.items()],
        commit_message="first",
    )
    ada.create_commit(
        repo,
        [
            CommitOperationAdd("weights.bin", large),
            CommitOperationAdd("new/a.txt", b"a"),
            CommitOperationCopy("old/1.txt", "new/copy.txt"),
            CommitOperationDelete("old/0.txt"),
            CommitOperationDelete("old/2.txt"),
        ],
        commit_message="second",
        commit_description="of many kinds",
    )
    ada.create_commit(repo, [CommitOperationCopy("weights.bin", "copy.bin")], commit_message="third")
    assert ada.list_repo_files(repo) == ["copy.bin", "new/a.txt", "new/copy.txt", "old/1.txt", "weights.bin"]
    ada.delete_folder("new", repo_id=repo)
    ada.delete_file("old/1.txt", repo_id=repo)
    assert ada.list_repo_files(repo) == ["copy.bin", "weights.bin"]
    commits = ada.list_repo_commits(repo)
    assert [commit.title for commit in commits[2:]] == ["third", "second", "first", "initial commit"]
    assert commits[3].message == "of many kinds"
    assert commits[0].authors == ["ada"]
    assert ada.list_repo_files(repo, revision=commits[4].commit_id) == sorted(files)
    with pytest.raises(EntryNotFoundError):
        ada.delete_file("old/1.txt", repo_id=repo)


def test_a_slash_marks_a_deleted_folder(ada: HfApi, repo: str) -> None:
    files = [CommitOperationAdd(f"old/{name}", b"x") for name in ("a", "b/c")]
    ada.create_commit(repo, [*files, CommitOperationAdd("kept", b"x")], commit_message="first")
    ada.create_commit(repo, [CommitOperationDelete("old/")], commit_message="second")
    assert ada.list_repo_files(repo) == ["kept"]
    with pytest.raises(EntryNotFoundError):
        ada.create_commit(repo, [CommitOperationDelete("kept/")], commit_message="no folder")


def test_branches_and_tags(hub: HubServer, ada: HfApi, repo: str, tmp_path: Path) -> None:
    ada.upload_file(path_or_fileobj=b"1", path_in_repo="a", repo_id=repo)
    ada.create_tag(repo, tag="v1.0")
    ada.create_branch(repo, branch="work/fast")
    ada.upload_file(path_or_fileobj=b"2", path_in_repo="a", repo_id=repo, revision="work/fast")
    refs = ada.list_repo_refs(repo)
    assert [branch.name for branch in refs.branches] == ["main", "work/fast"]
    assert [tag.ref for tag in refs.tags] == ["refs/tags/v1.0"]
    for revision, content in (("v1.0", b"1"), ("main", b"1"), ("work/fast", b"2")):
        path = hf_hub_download(
            repo, "a", revision=revision, endpoint=hub.url, cache_dir=tmp_path, token=False
        )
        assert Path(path).read_bytes() == content
    assert ada.model_info(repo, revision="work/fast").sha != ada.model_info(repo).sha
    with pytest.raises(HfHubHTTPError, match="409"):
        ada.create_branch(repo, branch="work/fast")
    ada.create_branch(repo, branch="work/fast", exist_ok=True)
    with pytest.raises(HfHubHTTPError, match="409"):
        ada.create_tag(repo, tag="v1.0")
    with pytest.raises(RevisionNotFoundError):
        ada.upload_file(path_or_fileobj=b"2", path_in_repo="a", repo_id=repo, revision="nowhere")
    ada.delete_tag(repo, tag="v1.0")
    ada.delete_branch(repo, branch="work/fast")
    with pytest.raises(HfHubHTTPError, match="403"):
        ada.delete_branch(repo, branch="main")
    assert [branch.name for branch in ada.list_repo_refs(repo).branches] == ["main"]


def test_the_last_change_of_each_file(ada: HfApi, repo: str) -> None:
    for number, name in enumerate(["a", "d/b", "d/c", "a"]):
        ada.upload_file(
            path_or_fileobj=b"%d" % number, path_in_repo=name, repo_id=repo, commit_message=f"change {number}"
        )
    tree = ada.list_repo_tree(repo, recursive=True, expand=True)
    titles = {entry.path: entry.last_commit.title for entry in tree if entry.last_commit}
    assert titles == {"a": "change 3", "d": "change 2", "d/b": "change 1", "d/c": "change 2"}
    (info,) = ada.get_paths_info(repo, ["d/b"], expand=True)
    assert info.last_commit
    assert info.last_commit.title == "change 1"


def test_a_listing_of_files_is_paginated(ada: HfApi, repo: str) -> None:
    names = sorted(f"d{number % 7}/{number:05}" for number in range(2300))
    ada.create_commit(repo, [CommitOperationAdd(name, b"x") for name in names], commit_message="many")
    assert ada.list_repo_files(repo) == names
    assert len(list(ada.list_repo_tree(repo))) == 7
    assert [file.path for file in ada.list_repo_tree(repo, "d3")] == [n for n in names if n.startswith("d3/")]
    expanded = list(ada.list_repo_tree(repo, "d3", expand=True))
    assert len(expanded) == len([n for n in names if n.startswith("d3/")])


# -- lists -------------------------------------------------------------------------------------------------


def card(*tags: str) -> bytes:
    return (
        "---\ntags:\n" + "".join(f"- {tag}\n" for tag in tags) + "license: apache-2.0\n---\n# Model\n"
    ).encode()


def test_lists_are_filtered_by_tag_author_and_text(hub: HubServer, ada: HfApi, anonymous: HfApi) -> None:
    for owner, name, tags in [
        ("ada", "zoo-1", ["collidium", "tracking"]),
        ("ada", "zoo-2", ["collidium"]),
        ("grace", "zoo-3", ["collidium", "tracking"]),
        ("grace", "zoo-4", ["tracking"]),
    ]:
        api = hub.api(owner)
        api.create_repo(f"{owner}/{name}")
        api.upload_file(path_or_fileobj=card(*tags), path_in_repo="README.md", repo_id=f"{owner}/{name}")

    def ids(**query: Any) -> list[str]:
        return [model.id.partition("/")[2] for model in anonymous.list_models(**query)]

    assert ids(filter="collidium") == ["zoo-3", "zoo-2", "zoo-1"]
    assert ids(filter=["collidium", "tracking"]) == ["zoo-3", "zoo-1"]
    assert ids(filter=["collidium", "tracking"], author="ada") == ["zoo-1"]
    assert ids(search="ZOO-4") == ["zoo-4"]
    assert ids(filter="license:apache-2.0", search="zoo", sort="created_at") == [
        "zoo-4",
        "zoo-3",
        "zoo-2",
        "zoo-1",
    ]
    assert ids(filter="collidium", limit=1) == ["zoo-3"]
    assert ids(filter="nothing") == []
    assert list(anonymous.list_datasets(filter="collidium", author="ada")) == []
    info = anonymous.model_info("ada/zoo-1")
    assert set(info.tags) == {"collidium", "tracking", "license:apache-2.0"}
    assert info.card_data
    assert info.card_data.license == "apache-2.0"
    ada.upload_file(path_or_fileobj=card("other"), path_in_repo="README.md", repo_id="ada/zoo-1")
    assert ids(filter="collidium") == ["zoo-3", "zoo-2"]
    ada.delete_file("README.md", repo_id="ada/zoo-1")
    assert anonymous.model_info("ada/zoo-1").tags == []


def test_a_list_is_paginated(hub: HubServer, ada: HfApi) -> None:
    for number in range(5):
        ada.create_repo(f"ada/paged-{number}", repo_type="dataset")
    with hub.http() as client:
        answer = client.get("/api/datasets", params={"search": "paged", "limit": 2, "filter": []})
        seen = [[item["id"] for item in answer.json()]]
        while "next" in answer.links:
            answer = client.get(answer.links["next"]["url"])
            seen.append([item["id"] for item in answer.json()])
    assert seen == [["ada/paged-4", "ada/paged-3"], ["ada/paged-2", "ada/paged-1"], ["ada/paged-0"]]


@pytest.mark.parametrize(
    "front",
    [
        "tags: [a",
        "- a",
        "a: &x [1]\nb: [*x]",
        "a: .nan",
        "{" * 2000,
        "? [1]\n: 2",
        'tags: ["\\uD800", ""]',
        "x: " + "9" * 5000,
    ],
)
def test_an_invalid_card_sets_no_tags(hub: HubServer, repo: str, front: str) -> None:
    text = f"---\n{front}\n---\n"
    ada = hub.api("ada")
    with hub.http("ada") as client:
        answer = client.post("/api/validate-yaml", json={"content": text, "repoType": "model"})
        assert answer.status_code in {200, 400}
        content = base64.b64encode(text.encode()).decode()
        lines = [
            {"key": "header", "value": {"summary": "x"}},
            {"key": "file", "value": {"path": "README.md", "content": content, "encoding": "base64"}},
        ]
        commit = "\n".join(map(json.dumps, lines))
        answer = client.post(f"/api/models/{repo}/commit/main", content=commit)
    assert answer.status_code == 200, answer.text
    assert ada.model_info(repo).tags == []


def test_the_client_does_not_upload_an_invalid_card(ada: HfApi, repo: str) -> None:
    with pytest.raises((ValueError, BadRequestError), match="front matter"):
        ada.upload_file(path_or_fileobj=b"---\ntags: [a\n---\n", path_in_repo="README.md", repo_id=repo)


# -- as a file system ----------------------------------------------------------------------------------------


def test_the_file_system_interface(hub: HubServer, ada: HfApi, large: Path) -> None:
    ada.create_repo("ada/events", repo_type="dataset")
    fs = HfFileSystem(endpoint=hub.url, token=hub.token("ada"), skip_instance_cache=True)
    with fs.open("datasets/ada/events/data/ttbar_pu0/a.txt", "w") as file:
        file.write("events")
    fs.put_file(str(large), "datasets/ada/events/data/ttbar_pu0/weights.bin")
    fs.invalidate_cache()
    assert fs.glob("datasets/ada/events/data/*/*.txt") == ["datasets/ada/events/data/ttbar_pu0/a.txt"]
    assert fs.read_text("hf://datasets/ada/events/data/ttbar_pu0/a.txt") == "events"
    with fs.open("datasets/ada/events/data/ttbar_pu0/weights.bin", "rb", block_size=2**20) as file:
        file.seek(-100, 2)
        assert file.read() == large.read_bytes()[-100:]
        file.seek(5_000_000)
        assert file.read(10) == large.read_bytes()[5_000_000:5_000_010]
    fs.rm("datasets/ada/events/data/ttbar_pu0/a.txt")
    fs.invalidate_cache()
    assert not fs.exists("datasets/ada/events/data/ttbar_pu0/a.txt")
    assert fs.isdir("datasets/ada/events/data")
