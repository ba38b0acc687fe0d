"""What people do with ``huggingface_hub``, whichever version; run by that version's interpreter.

Arguments: a prefix of repository names, a directory, and which of the functions ``do_*`` to call. Prints
what each raised, or null, as a JSON object.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from huggingface_hub import HfApi, hf_hub_download, snapshot_download

# By path: some versions never send a buffer by Xet.
LARGE_BYTES = 11 * 1024**2

api = HfApi()
anonymous = HfApi(token=False)
prefix, directory = f"ada/{sys.argv[1]}", Path(sys.argv[2])
directory.mkdir(exist_ok=True)


def make(name: str, repo_type: str = "model", **options: bool) -> str:
    url = api.create_repo(f"{prefix}-{name}", repo_type=repo_type, **options)
    assert str(url).startswith(f"{api.endpoint}/"), url
    assert url.repo_id == f"{prefix}-{name}", url
    return url.repo_id


def error_of(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as error:  # each client has its own classes
        return f"{type(error).__name__}: {error}"
    return ""


def refused(call: Callable[[], object], *sentences: str) -> None:
    error = error_of(call)
    assert error.startswith(("HfHubHTTPError", "BadRequestError")), error
    assert all(sentence in error for sentence in sentences), error
    assert "permission" not in error, error


def do_smoke() -> None:
    """What everybody does, and each kind of upload."""
    make("model")
    repo = make("smoke", "dataset")
    folder = directory / "folder"
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "data" / "hits.parquet").write_bytes(b"PAR1" * 100)
    (folder / "a b, 100%.txt").write_text("plain")
    done = api.upload_folder(repo_id=repo, repo_type="dataset", folder_path=folder)
    assert done.commit_url.startswith(f"{api.endpoint}/datasets/{repo}/commit/"), done
    api.upload_file(path_or_fileobj=b"one", path_in_repo="one.txt", repo_id=repo, repo_type="dataset")
    assert api.list_repo_files(repo, repo_type="dataset") == [
        "a b, 100%.txt", "data/hits.parquet", "one.txt",
    ]  # fmt: skip
    down = Path(snapshot_download(repo, repo_type="dataset", cache_dir=directory / "cache"))
    assert (down / "data" / "hits.parquet").read_bytes() == b"PAR1" * 100
    one = hf_hub_download(repo, "one.txt", repo_type="dataset", cache_dir=directory / "cache")
    assert Path(one).read_text() == "one"
    api.delete_file("one.txt", repo, repo_type="dataset")
    assert "one.txt" not in api.list_repo_files(repo, repo_type="dataset")
    api.delete_repo(repo, repo_type="dataset")
    assert not api.repo_exists(repo, repo_type="dataset")


def do_large() -> None:
    """A file that goes by LFS, and the list of such files."""
    repo = make("large")
    path = directory / "weights.bin"
    path.write_bytes(bytes(range(256)) * (LARGE_BYTES // 256))
    for _ in range(2):
        api.upload_file(path_or_fileobj=path, path_in_repo="weights.bin", repo_id=repo)
    api.upload_file(path_or_fileobj=b"small", path_in_repo="small.bin", repo_id=repo)
    down = Path(hf_hub_download(repo, "weights.bin", cache_dir=directory / "cache"))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert hashlib.sha256(down.read_bytes()).hexdigest() == digest
    (listed,) = api.list_lfs_files(repo)
    assert (listed.file_oid, listed.oid, listed.size) == (digest, digest, LARGE_BYTES)
    assert listed.filename == "weights.bin"
    api.delete_file("weights.bin", repo)
    (listed,) = api.list_lfs_files(repo)
    assert listed.oid == digest
    refused(lambda: api.permanently_delete_lfs_files(repo, [listed]), "501", "keeps all history")


def do_xet() -> None:
    """All ways to upload what does not go inside the commit, in each compression of Xet."""
    repo = make("xet")
    folder = directory / "xet"
    folder.mkdir(exist_ok=True)
    contents = {
        "tiny.parquet": b"PAR1" * 100,
        "random.bin": random.Random(1).randbytes(LARGE_BYTES),
        "floats.parquet": struct.pack("<300000f", *(100 + n % 977 / 977 for n in range(300_000))),
        "text.parquet": b"".join(b"event %d\n" % n for n in range(100_000)),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    upload: dict[str, Any] = {"repo_id": repo, "repo_type": "model", "folder_path": folder}
    api.upload_file(path_or_fileobj=folder / "random.bin", path_in_repo="one/random.bin", repo_id=repo)
    api.upload_folder(**upload, path_in_repo="all")
    (folder / "more.parquet").write_bytes(contents["random.bin"][:3_000_000] + b"and more")
    if large := getattr(api, "upload_large_folder", None):  # not in 2.x
        large(**upload, print_report=False)
    else:
        api.upload_folder(**upload)
    down = Path(snapshot_download(repo, cache_dir=directory / "cache"))
    for name in ("more.parquet", *contents):
        assert (down / name).read_bytes() == (folder / name).read_bytes(), name
    for name, content in contents.items():
        assert (down / "all" / name).read_bytes() == content, name
    assert (down / "one/random.bin").read_bytes() == contents["random.bin"]


def do_settings() -> None:
    """Private and back."""
    repo = make("settings")
    for private in (True, False, True):
        api.update_repo_settings(repo, private=private)
        assert api.model_info(repo).private is private
        assert anonymous.repo_exists(repo) is not private
    refused(lambda: api.update_repo_settings(repo, gated="auto"), "no gated repositories")
    api.update_repo_settings(repo, gated=False)


def do_move() -> None:
    repo, other = make("move"), make("taken")
    api.upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id=repo)
    refused(lambda: api.move_repo(repo, other), "409", "already")
    refused(lambda: api.move_repo(repo, "grace/hers"), "501", "cannot move repositories of ada")
    refused(lambda: api.move_repo(repo, f"{prefix}--bad"), "Invalid repository name")
    api.move_repo(repo, f"{repo}-away")
    assert api.list_repo_files(f"{repo}-away") == ["x"]
    assert not api.repo_exists(repo)
    make("move")


def do_access() -> None:
    repo = make("access", private=True)
    api.auth_check(repo)
    assert error_of(lambda: anonymous.auth_check(repo)).startswith("RepositoryNotFoundError")


def do_listings() -> None:
    repo = make("listed", "dataset")
    api.upload_file(path_or_fileobj=b"x", path_in_repo="a/x", repo_id=repo, repo_type="dataset")
    found = {dataset.id: dataset for dataset in api.list_datasets(author="ada", full=True)}
    assert [file.rfilename for file in found[repo].siblings or ()] == ["a/x"], found[repo]
    assert [file.rfilename for file in api.dataset_info(repo).siblings or ()] == ["a/x"]
    empty = make("listed")
    (model,) = (model for model in api.list_models(full=True) if model.id == empty)
    assert model.siblings == []
    assert all(dataset.siblings is None for dataset in api.list_datasets(author="ada"))


def do_branches() -> None:
    repo = make("branches")
    api.create_branch(repo, branch="next")
    api.upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id=repo, revision="next")
    assert (api.list_repo_files(repo), api.list_repo_files(repo, revision="next")) == ([], ["x"])
    api.create_tag(repo, tag="v1", revision="next")
    assert api.list_repo_files(repo, revision="v1") == ["x"]


def do_unsupported() -> None:
    """What this hub does not do is said as that."""
    repo = make("unsupported")
    refused(
        lambda: api.upload_file(path_or_fileobj=b"1", path_in_repo="a", repo_id=repo, create_pr=True),
        "501", "This hub has no discussions or pull requests: commit to a branch",
    )  # fmt: skip
    refused(lambda: api.create_pull_request(repo, title="x"), "501", "no discussions or pull requests")
    refused(lambda: list(api.get_repo_discussions(repo)), "501", "no discussions or pull requests")
    refused(lambda: api.super_squash_history(repo), "501", "keeps all history")
    refused(lambda: api.get_space_runtime(repo), "501", "stores the files of Spaces and does not run them")
    refused(api.list_webhooks, "404", "This hub has no such address")


def do_absent() -> None:
    """What docs/local-hub.md lists as not there raises at once, with one sentence."""
    repo, some = make("absent"), "0" * 24
    calls: dict[str, tuple[object, ...]] = {
        "bucket_info": ("ada/b",),
        "create_bucket": ("ada/b",),
        "create_collection": ("title",),
        "get_collection": (f"ada/title-{some}",),
        "list_liked_repos": ("ada",),
        "list_repo_likers": (repo,),
        "unlike": (repo,),
        "get_webhook": (some,),
        "get_user_overview": ("ada",),
        "list_user_followers": ("ada",),
        "list_user_repos": (),
        "get_organization_overview": ("lab",),
        "list_organization_members": ("lab",),
        "list_pending_access_requests": (repo,),
        "duplicate_repo": (repo, f"{repo}-copy"),
        "get_model_tags": (),
        "get_dataset_tags": (),
        "get_sharded_safetensors_metadata": (repo,),
        "get_dataset_leaderboard": (repo,),
        "search_spaces": ("tracks",),
        "list_space_templates": (),
        "list_spaces_hardware": (),
        "list_papers": (),
        "list_jobs_hardware": (),
        "cancel_job": (),
        "list_scheduled_jobs": (),
    }
    keywords = {"cancel_job": {"job_id": "1"}, "list_papers": {"query": "tracks"}}
    for name, arguments in calls.items():
        if (method := getattr(api, name, None)) is None:
            continue  # of another version

        def call(method: Any = method, name: str = name, arguments: Any = arguments) -> None:
            result = method(*arguments, **keywords.get(name, {}))
            if isinstance(result, Iterator):
                next(result)

        error = error_of(call)
        assert "404" in error, (name, error)
        assert "This hub has no such address" in error, (name, error)


if __name__ == "__main__":
    results = {}
    for name in sys.argv[3:]:
        try:
            globals()[f"do_{name}"]()
        except BaseException:  # reported to the test
            results[name] = traceback.format_exc()
        else:
            results[name] = None
    sys.stdout.write(json.dumps(results))
