"""Predictions that the server downloads from the hub with the account's permissions."""

from __future__ import annotations

from hashlib import sha256

import httpx
import pyarrow as pa
import pytest
from huggingface_hub import HfApi
from tests.hub import token_on

from collidium.client import Client
from collidium.errors import InvalidInput, NotFound, TooLarge
from collidium.testing.server import ServerProcess

from .conftest import files_below, parquet

#: Files of the hub; what is kept of a submission is the same as of an upload.
pytestmark = pytest.mark.one_database


@pytest.fixture(scope="module")
def token(shared_platform: ServerProcess) -> str:
    return token_on(shared_platform.data_dir / "hub", "hubert")


@pytest.fixture(scope="module")
def api(shared_platform: ServerProcess, token: str) -> HfApi:
    """The hub, with a private repository of an account."""
    api = HfApi(endpoint=shared_platform.hub_url, token=token)
    api.create_repo("hubert/predictions", repo_type="dataset", private=True)
    upload(api, "large", bytes(8_000_000))
    upload(api, "no-parquet", b"text")
    return api


def upload(api: HfApi, path: str, content: bytes) -> str:
    """Add a file; returns the commit."""
    done = api.upload_file(
        path_or_fileobj=content, path_in_repo=path, repo_id="hubert/predictions", repo_type="dataset"
    )
    return str(done.oid)


def test_predictions_come_from_a_commit_of_the_hub(
    shared_platform: ServerProcess, api: HfApi, token: str, oracle: pa.Table
) -> None:
    content = parquet(oracle)
    # A parquet file is kept by LFS there; another one as git keeps files.
    for path in ("runs/1 @home.parquet", "plain"):
        commit = upload(api, path, content)
        upload(api, path, b"a later one")
        options = ["--from-hub", f"hubert/predictions:{path}@{commit}", "--json"]
        shared_platform.environment["HF_TOKEN"] = token
        done = shared_platform.run("submit", "tracking", *options)
        assert done.returncode == 0, done.stderr
    with Client(shared_platform.base_url, token) as client:
        (kept,) = client.submissions().items
        assert kept.sha256 == sha256(content).hexdigest()
        assert str(client.submission(kept.submission_id).from_hub).startswith(
            "hubert/predictions:runs/1 @home.parquet@"
        )
        at = upload(api, "latest.parquet", parquet(oracle, compression="none"))
        receipt = client.submit_from_hub("tracking", "hubert/predictions:latest.parquet@main")
        assert client.submission(receipt.submission_id).from_hub == f"hubert/predictions:latest.parquet@{at}"


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("hubert/predictions", InvalidInput),
        ("../api:x@main", InvalidInput),
        ("hubert/predictions:missing@main", NotFound),
        ("hubert/predictions:large@nothing", NotFound),
        ("hubert/nothing:large@main", NotFound),
        ("hubert/predictions:large@main", TooLarge),
        ("hubert/predictions:no-parquet@main", InvalidInput),
    ],
)
def test_invalid_hub_sources_are_rejected(
    shared_platform: ServerProcess, api: HfApi, token: str, source: str, error: type[Exception]
) -> None:
    with Client(shared_platform.base_url, token) as client, pytest.raises(error):
        client.submit_from_hub("tracking", source)
    assert files_below(shared_platform.data_dir / "uploads") == []


def test_a_private_repository_is_its_owners(alice: httpx.Client, api: HfApi, oracle: pa.Table) -> None:
    upload(api, "mine.parquet", parquet(oracle))
    body = {"source": "hubert/predictions:mine.parquet@main"}
    assert alice.post("/v1/benchmark/tracking/submit/from-hub", json=body).status_code == 404
