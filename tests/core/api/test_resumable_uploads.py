"""Resumable uploads: they continue after any failure, and have the result of a single request."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.client.servers import cutting
from tests.distributions import install
from tests.hub import token_on
from tests.waiting import eventually
from tortoise.timezone import now

from collidium import settings
from collidium.client import Client, transports
from collidium.client import uploads as client_uploads
from collidium.errors import InvalidInput
from collidium.files import data_directory
from collidium.submissions import uploads
from collidium.submissions.models import Upload
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, files_below, ok, operating, parquet, signed_in
from .test_challenges import NAME, close, has_results, new


def shuffled(oracle: pa.Table, seed: int) -> bytes:
    """Perfect predictions in another order: another file, as large as can be."""
    order = np.random.default_rng(seed).permutation(oracle.num_rows)
    return parquet(oracle.take(order), compression="none", use_dictionary=False)


def announced(content: bytes, **changed: str) -> dict[str, str]:
    digest = b64encode(sha256(content).digest()).decode()
    headers = {
        "Upload-Complete": "?0",
        "Upload-Length": str(len(content)),
        "Repr-Digest": f"sha-256=:{digest}:",
    }
    return headers | {name.replace("_", "-"): value for name, value in changed.items()}


def begin(client: httpx.Client, content: bytes, path: str = SUBMIT, **changed: str) -> str:
    begun = client.post(path, headers=announced(content, **changed))
    assert begun.status_code == 201, begun.text
    assert "max-age=86400" in begun.headers["Upload-Limit"]
    return begun.headers["Location"]


def append(
    client: httpx.Client, where: str, content: Any, offset: int, complete: bool = True
) -> httpx.Response:
    headers = {
        "Content-Type": "application/partial-upload",
        "Upload-Offset": str(offset),
        "Upload-Complete": "?1" if complete else "?0",
    }
    return client.patch(where, content=content, headers=headers)


@pytest.fixture
def resumable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transports, "RESUMABLE_BYTES", 1)


def client_of(server: ServerProcess, name: str, backend: str | None = None) -> Client:
    return Client(backend or server.base_url, token_on(server.data_dir / "hub", name))


def test_an_upload_in_parts_is_a_submission_as_any(
    platform: ServerProcess, alice: httpx.Client, oracle: pa.Table
) -> None:
    content = shuffled(oracle, 1)
    where = begin(alice, content, f"{SUBMIT}?model_repo=")
    for start in (0, 1000):
        assert append(alice, where, content[start : start + 1000], start, False).status_code == 204
    state = alice.head(where).headers
    assert (state["Upload-Offset"], state["Upload-Complete"]) == ("2000", "?0")
    assert state["Upload-Length"] == str(len(content))
    assert begin(alice, content) == where, "the same file is the same upload"
    receipt = append(alice, where, content[2000:], 2000)
    assert (receipt.status_code, receipt.headers["Upload-Complete"]) == (200, "?1")
    plain = alice.post(SUBMIT, content=content).json()
    assert plain == receipt.json() | {"deduplicated": True}
    # The answer was lost: it is given again.
    assert alice.head(where).headers["Upload-Complete"] == "?1"
    assert append(alice, where, b"", len(content)).json()["submission_id"] == plain["submission_id"]
    assert append(alice, where, b"more", len(content)).status_code == 400
    assert not (platform.data_dir / "uploads" / "partial" / where.rpartition("/")[2]).exists()


def test_bad_requests_of_an_upload(alice: httpx.Client, platform: ServerProcess, oracle: pa.Table) -> None:
    content = shuffled(oracle, 2)
    where = begin(alice, content)
    ahead = append(alice, where, content, 5)
    assert (ahead.status_code, ahead.headers["Upload-Offset"]) == (409, "0")
    with signed_in(platform, "mallory-of-uploads") as mallory:
        others = [append(mallory, where, content, 0), mallory.get(where), mallory.delete(where)]
        assert [answer.status_code for answer in others] == [404] * 3
    assert append(alice, where, b"x", 0, False).status_code == 204
    assert append(alice, where, b"", 1).status_code == 400, "most of it is missing"
    wrong = alice.patch(where, headers={"Upload-Offset": "-1", "Upload-Complete": "yes"})
    assert {error["field"] for error in wrong.json()["errors"]} == {"upload_offset", "upload_complete"}
    headers = {"Upload-Offset": "1", "Upload-Complete": "?0", "Content-Type": "text/plain"}
    assert alice.patch(where, content=b"x", headers=headers).status_code == 415
    # Longer than announced, with and without a length.
    for body in (content, iter([content])):
        assert append(alice, where, body, 1).status_code == 413
        assert alice.head(where).status_code == 404, "it is given up"
        where = begin(alice, content)
        append(alice, where, b"x", 0, False)
    differs = append(alice, where, content[1:], 1)
    assert (differs.status_code, differs.headers["Upload-Complete"]) == (400, "?1")
    assert "was announced" in differs.json()["detail"]
    assert alice.head(where).status_code == 404
    for header in ("Upload_Length", "Repr_Digest"):
        assert alice.post(SUBMIT, headers=announced(content, **{header: "?"})).status_code == 422
    assert alice.post(SUBMIT, headers=announced(content, Upload_Length=str(2**40))).status_code == 413
    assert alice.post(SUBMIT, headers=announced(content), content=b"x").status_code == 400
    where = begin(alice, content)
    append(alice, where, b"x", 0, False)
    assert alice.delete(where).status_code == 204
    assert alice.head(where).status_code == 404
    assert files_below(platform.data_dir / "uploads") == []


def test_uploads_of_an_account_are_limited(alice: httpx.Client) -> None:
    whole = [begin(alice, bytes([index])) for index in range(4)]
    refused = alice.post(SUBMIT, headers=announced(b"another"))
    assert (refused.status_code, int(refused.headers["Retry-After"]) > 80_000) == (429, True)
    forgotten = re.findall("[0-9a-f]{32}", refused.json()["detail"])
    assert set(whole) == {f"/v1/uploads/{one}" for one in forgotten}, "who has lost the addresses can cancel"
    alice.delete(whole[0])
    begin(alice, b"another")


def test_one_request_appends_at_a_time(
    alice: httpx.Client, platform: ServerProcess, oracle: pa.Table
) -> None:
    content = shuffled(oracle, 3)
    where = begin(alice, content)
    second: list[httpx.Response] = []

    def meanwhile() -> Any:
        yield content[:1000]
        eventually(lambda: bool(files_below(platform.data_dir / "uploads" / "partial")))
        with httpx.Client(base_url=alice.base_url, headers=alice.headers, trust_env=False) as other:
            second.extend([append(other, where, content, 0), other.delete(where)])
        yield content[1000:]

    assert append(alice, where, meanwhile(), 0).status_code == 200
    assert [answer.status_code for answer in second] == [409, 409]
    assert second[0].headers["Retry-After"] == "1"


@pytest.mark.usefixtures("resumable")
def test_a_client_resumes_after_a_broken_connection(
    platform: ServerProcess, oracle: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_uploads, "CHUNK_BYTES", 65536)
    path = tmp_path / "predictions.parquet"
    # Larger than what a connection that breaks may lose.
    pq.write_table(oracle.replace_schema_metadata({"note": "x" * 400_000}), path)
    size, sent, there = path.stat().st_size, list[int](), [0]

    def more_is_there() -> bool:
        there.append(sum(file.stat().st_size for file in files_below(platform.data_dir / "uploads")))
        return there[-1] > there[-2]

    with (
        cutting(platform.base_url, [400_000, 350_000], more_is_there) as (url, forwarded),
        client_of(platform, "ada-of-uploads", url) as client,
    ):
        receipt = client.submit("tracking", path, progress=lambda done, _: sent.append(done))
    assert receipt.sha256 == sha256(path.read_bytes()).hexdigest()
    assert not receipt.deduplicated
    assert len(forwarded) == 3
    starts = [0, *(done for before, done in pairwise(sent) if done <= before)]
    assert len(starts) == 3
    assert starts == sorted(set(starts)), "what had arrived was not sent again"
    assert sent[-1] == size


@pytest.mark.long
def test_2_gb_of_2_7_are_not_sent_again(start_platform: StartServer, tmp_path: Path) -> None:
    """The size of 1.5 billion hits; what the file holds is zeros, which is the answer once all are there."""
    allow = "from collidium.scoring import predictions\npredictions.SPARE_FILE_BYTES = 2**32\n"
    install(tmp_path / "site", "allow-large", {"allow_large": allow})
    server = start_platform({"PYTHONPATH": str(tmp_path / "site")})
    path, partial = tmp_path / "predictions.parquet", server.data_dir / "uploads"
    with path.open("wb") as file:
        file.truncate(2_700_000_000)

    def most_is_there() -> bool:
        return sum(file.stat().st_size for file in files_below(partial)) > 2_000_000_000

    with (
        cutting(server.base_url, [2_020_000_000], most_is_there) as (url, forwarded),
        client_of(server, "alice", url) as client,
        pytest.raises(InvalidInput, match="does not begin with PAR1"),
    ):
        client.submit("tracking", path)
    assert len(forwarded) == 2
    assert sum(forwarded) < 2_750_000_000
    assert files_below(partial) == []


@pytest.mark.usefixtures("resumable")
def test_an_upload_survives_kills_of_the_server(
    fresh_platform: ServerProcess, oracle: pa.Table, tmp_path: Path
) -> None:
    server, content = fresh_platform, shuffled(oracle, 5)
    port = int(server.base_url.rpartition(":")[2])
    path = tmp_path / "predictions.parquet"
    path.write_bytes(content)
    with signed_in(server, "alice") as alice:
        where = begin(alice, content)
        append(alice, where, content[:5000], 0, False)
        server.kill()
        server.start(port=port)
        assert alice.head(where).headers["Upload-Offset"] == "5000"
        seen: list[int] = []

        def kill_once(done: int, _: int) -> None:
            seen.append(done)
            if len(seen) == 1:
                server.kill()
                server.start(port=port)

        token = alice.headers["Authorization"].partition(" ")[2]
        with Client(server.base_url, token) as client:
            receipt = client.submit("tracking", path, progress=kill_once)
        assert seen[0] == 5000, "another process finds the upload by the file"
        assert len(alice.get("/v1/me/submissions").json()) == 1
        assert receipt.sha256 == sha256(content).hexdigest()


@pytest.mark.usefixtures("resumable")
def test_errors_of_the_file_end_an_upload(platform: ServerProcess, tmp_path: Path) -> None:
    path = tmp_path / "predictions.parquet"
    path.write_bytes(b"no parquet file")
    with client_of(platform, "eve-of-uploads") as client, pytest.raises(InvalidInput, match="parquet"):
        client.submit("tracking", path)


def test_an_upload_that_began_in_time_counts(
    fresh_platform: ServerProcess, caller: Callable[[str], httpx.Client], oracle: pa.Table
) -> None:
    submit, content = f"/v1/challenges/{NAME}/submit", shuffled(oracle, 6)
    with operating(fresh_platform) as admin:
        new(admin)
        alice, bob = caller("alice"), caller("bob")
        where, other = begin(alice, content, submit), begin(bob, content, submit)
        append(alice, where, content[:1000], 0, False)
        close(admin)
        assert bob.post(submit, headers=announced(b"later")).status_code == 409
        ok(append(alice, where, content[1000:], 1000))
        assert not has_results(alice)
        assert bob.delete(other).status_code == 204
        eventually(lambda: has_results(alice))
    assert len(alice.get(f"/v1/challenges/{NAME}/leaderboard").json()) == 1


async def test_ended_upload_gets_no_file(connected: str, tmp_path: Path) -> None:
    """A request that looked it up before another one ended it: each left a file that no quota counts."""
    chosen = settings.load(data_dir=tmp_path)
    data_directory.partial_uploads(chosen).mkdir(parents=True)
    for end in (uploads.discard, lambda *which: uploads.complete(*which, "a" * 32)):
        row = upload_row("a", now())
        await row.save(force_create=True)
        async with uploads.opened(chosen, row) as file:
            assert file is not None
        await end(chosen, row)
        async with uploads.opened(chosen, row) as file:
            assert file is None
        assert files_below(tmp_path) == []


def upload_row(letter: str, began_at: datetime) -> Upload:
    return Upload(
        id=letter * 32,
        account_id=1,
        challenge="tracking",
        sha256="0" * 64,
        size_bytes=1,
        began_at=began_at,
        expires_at=began_at + uploads.AGE,
    )


async def test_uploads_that_expired_are_swept(connected: str, tmp_path: Path) -> None:
    kept, old = upload_row("a", now()), upload_row("b", now() - 2 * uploads.AGE)
    chosen = settings.load(data_dir=tmp_path)
    data_directory.partial_uploads(chosen).mkdir(parents=True)
    for row in (kept, old):
        await row.save(force_create=True)
        uploads.path_of(chosen, row).write_bytes(b"x")
        began = row.began_at.timestamp()
        os.utime(uploads.path_of(chosen, row), (began, began))
    await uploads.prune(now())
    data_directory.sweep_old(chosen, 0, (now() - uploads.AGE).timestamp())
    assert [row.id for row in await Upload.all()] == [kept.id]
    assert files_below(data_directory.partial_uploads(chosen)) == [uploads.path_of(chosen, kept)]
