"""Uploads to the local hub by Xet: hostile ones by plain HTTP, kills and lost xorbs with the client."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import random
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from quart import Quart
from tests.hub import HubServer
from tests.plugins.test_hub_http import commit
from tests.waiting import eventually, until

from collidium.files.held import HeldFile
from collidium.testing.processes import isolated_environment
from collidium_plugins.local_hub import accounts
from collidium_plugins.local_hub.failures import HubFailure
from collidium_plugins.local_hub.openid.requests import RegisteredClient
from collidium_plugins.local_hub.store import Store, sign
from collidium_plugins.local_hub.web import context, make_blueprint
from collidium_plugins.local_hub.web.xet import end_idle_hourly
from collidium_plugins.local_hub.xet import SESSION_SECONDS, XORBS, XetSessions

TAG = b"HFRepoMetaData\0UigEj{\x81W\x83\xa5\xbd\xd9\\\xcd\xd1J\xa9"
XORB = "00" * 32
CHUNKS = (b"first chunk, ", b"second chunk, ", b"third chunk")
CONTENT = b"".join(CHUNKS)

Segment = tuple[str, int, int, int]


def chunk(content: bytes, scheme: int = 0, packed: bytes | None = None, size: int | None = None) -> bytes:
    """A chunk of a xorb; its header can be made to lie."""
    packed = content if packed is None else packed
    header = b"\0" + len(packed).to_bytes(3, "little") + bytes([scheme])
    return header + (len(content) if size is None else size).to_bytes(3, "little") + packed


def lz4(content: bytes) -> bytes:
    return bytes(pa.Codec("lz4").compress(content))


def turned(hexadecimal: str) -> bytes:
    raw = bytes.fromhex(hexadecimal)
    return b"".join(raw[start : start + 8][::-1] for start in range(0, 32, 8))


def file_of(content: bytes, *segments: Segment, sha256: str | None = None) -> bytes:
    """A file of a shard."""
    sha256 = sha256 or hashlib.sha256(content).hexdigest()
    entries = b"".join(turned(xorb) + struct.pack("<4I", 0, *numbers) for xorb, *numbers in segments)
    flags = 1 << 31 | 1 << 30
    hashes = bytes(48 * len(segments))
    return (
        bytes(32)
        + struct.pack("<IIQ", flags, len(segments), 0)
        + entries
        + hashes
        + turned(sha256)
        + bytes(16)
    )


def shard_of(*files: bytes) -> bytes:
    return TAG + struct.pack("<QQ", 2, 0) + b"".join(files) + b"\xff" * 32 + bytes(16)


WHOLE: Segment = (XORB, len(CONTENT), 0, 3)
GOOD = file_of(CONTENT, WHOLE)


@contextmanager
def uploading(hub: HubServer, repo: str, user: str = "ada") -> Iterator[httpx.Client]:
    """A client of the session that uploads to a repository."""
    hub.api(user).create_repo(repo, exist_ok=True)
    with hub.http(user) as client:
        document = client.get(f"/api/models/{repo}/xet-write-token/main").json()
    headers = {"Authorization": f"Bearer {document['accessToken']}"}
    with httpx.Client(base_url=document["casUrl"], headers=headers, timeout=30, trust_env=False) as client:
        yield client


def put_xorb(client: httpx.Client, *chunks: bytes, name: str = XORB) -> httpx.Response:
    return client.post(f"/v1/xorbs/default/{name}", content=b"".join(chunks))


def put_shard(client: httpx.Client, content: bytes) -> dict[str, Any]:
    """What the second version of the call responds, which current clients use."""
    answer = client.post("/v2/shards", content=content)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def commit_content(hub: HubServer, repo: str, content: bytes = CONTENT) -> httpx.Response:
    value = {"path": "file.bin", "algo": "sha256", "oid": hashlib.sha256(content).hexdigest()}
    with hub.http("ada") as client:
        return commit(client, repo, {"key": "lfsFile", "value": value})


# -- what is accepted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/shards", "/v1/shards", "/v2/shards"])
def test_xet_upload_is_stored_as_by_lfs(hub: HubServer, path: str) -> None:
    repo = f"ada/xet-stored{path.replace('/', '-')}"
    grouped = (
        bytes(range(0, 250, 4)) + bytes(range(1, 250, 4)) + bytes(range(2, 250, 4)) + bytes(range(3, 250, 4))
    )
    content = bytes(range(250)) + b"a" * 1000 + CONTENT
    with uploading(hub, repo) as client:
        assert client.get(f"/v1/chunks/default-merkledb/{XORB}").status_code == 404
        chunks = chunk(grouped, 2, lz4(grouped)), chunk(b"a" * 1000, 1, lz4(b"a" * 1000))
        assert put_xorb(client, *chunks, b"XETBLOB" + bytes(100)).json() == {"was_inserted": True}
        assert put_xorb(client, *map(chunk, CHUNKS), name="ab" * 32).status_code == 200
        entries = (XORB, 1250, 0, 2), ("ab" * 32, len(CONTENT), 0, 3)
        answer = client.post(path, content=shard_of(file_of(content, *entries), file_of(CONTENT, entries[1])))
        assert answer.json() == ({"type": "result"} if "v2" in path else {"result": 1})
    assert commit_content(hub, repo, content).status_code == 200
    with hub.http("ada") as client:
        assert client.get(f"/{repo}/resolve/main/file.bin").content == content
    assert commit_content(hub, repo).status_code == 200


def test_chunks_may_repeat_in_any_order(hub: HubServer) -> None:
    content = CHUNKS[2] + CHUNKS[1] + CHUNKS[2] + CONTENT
    segments = [(XORB, len(CHUNKS[n]), n, n + 1) for n in (2, 1, 2)]
    with uploading(hub, "ada/xet-order") as client:
        put_xorb(client, *map(chunk, CHUNKS))
        for _ in range(2):
            assert put_shard(client, shard_of(file_of(content, *segments, WHOLE))) == {"type": "result"}
    assert commit_content(hub, "ada/xet-order", content).status_code == 200


def test_two_uploads_of_a_file_at_once(hub: HubServer) -> None:
    with uploading(hub, "ada/xet-twice") as client, ThreadPoolExecutor(4) as threads:
        xorbs = threads.map(lambda _: put_xorb(client, *map(chunk, CHUNKS)).status_code, range(4))
        assert set(xorbs) == {200}
        shards = threads.map(lambda _: put_shard(client, shard_of(GOOD))["type"], range(4))
        assert set(shards) == {"result"}
    assert commit_content(hub, "ada/xet-twice").status_code == 200


# -- what is not -------------------------------------------------------------------------------------------

ZEROS = bytes(128 * 1024)


@pytest.mark.parametrize(
    ("chunks", "status"),
    [
        ([b"\1" + chunk(b"a")[1:]], 400),
        ([chunk(b"abc")[:7]], 400),
        ([chunk(b"abc")[:-1]], 400),
        ([chunk(b"abc", 3)], 400),
        ([chunk(b"abc", 1)], 400),
        ([chunk(b"abc", size=4)], 400),
        ([chunk(b"abc", size=2)], 400),
        ([chunk(b"", 1, lz4(bytes(10**7)), 100)], 400),
        ([chunk(b"", 2, lz4(bytes(100)), 101)], 400),
        ([chunk(b"", 1, lz4(bytes(200))[:-9], 200)], 400),
        ([chunk(bytes(128 * 1024 + 1))], 400),
        ([chunk(b"a")] * 8193, 400),
        ([chunk(ZEROS, 1, lz4(ZEROS))] * 513, 413),
        ([b"\0" * 8] * 9000, 400),
    ],
    ids=[
        "version", "header", "truncated", "scheme", "no-lz4", "short", "long", "bomb", "bomb-size", "cut-lz4",
        "chunk", "chunks", "xorb", "empty-chunks",
    ],
)  # fmt: skip
def test_invalid_xorb_is_rejected(hub: HubServer, chunks: list[bytes], status: int) -> None:
    with uploading(hub, "ada/xet-xorbs") as client:
        answer = put_xorb(client, *chunks)
    assert answer.status_code == status, answer.text
    assert hub.uploads == []


def test_xorb_has_a_bound_and_a_name(hub: HubServer) -> None:
    with uploading(hub, "ada/xet-xorbs") as client:
        assert client.post(f"/v1/xorbs/default/{XORB}", content=bytes(65 * 1024**2 + 1)).status_code == 413
        for name in ("x", "00" * 31, f"..%2f{'0' * 60}", XORB.replace("0", "G")):
            assert put_xorb(client, chunk(b"a"), name=name).status_code in {400, 404}
        assert client.post("/v2/shards", content=bytes(65 * 1024**2 + 1)).status_code == 413


MANY = 0xFFFF_FFFF


@pytest.mark.parametrize(
    ("shard", "words"),
    [
        (b"", "unknown format"),
        (b"x" * 48 + GOOD, "unknown format"),
        (shard_of(GOOD)[:-48], "truncated"),
        (shard_of(GOOD)[:200], "truncated"),
        (shard_of(GOOD[:36] + struct.pack("<I", MANY) + GOOD[40:]), "truncated"),
        (shard_of(GOOD[:36] + struct.pack("<I", 2) + GOOD[40:]), "truncated"),
        (shard_of(GOOD[:32] + struct.pack("<I", 1 << 31) + GOOD[36:]), "no SHA-256"),
        (shard_of(*[file_of(b"")] * 50_001), "50,000 files"),
        (shard_of(file_of(CONTENT, WHOLE, sha256="00" * 32)), "start it again"),
        (shard_of(file_of(CONTENT, ("cd" * 32, len(CONTENT), 0, 3))), "start it again"),
        (shard_of(file_of(CONTENT, (XORB, len(CONTENT), 0, 4))), "start it again"),
        (shard_of(file_of(CONTENT, (XORB, len(CONTENT), 3, 0))), "start it again"),
        (shard_of(file_of(CONTENT, (XORB, 0, 1, 1))), "start it again"),
        (shard_of(file_of(CONTENT, (XORB, len(CONTENT) + 1, 0, 3))), "start it again"),
        (shard_of(file_of(CONTENT, (XORB, MANY, 0, MANY))), "start it again"),
        (shard_of(file_of(CONTENT, (XORB, 1, 0, 3)), GOOD), "two sizes"),
        (shard_of(file_of(CONTENT, *[WHOLE] * 300), GOOD), "two sizes"),
        (shard_of(file_of(CONTENT, *[(XORB, MANY, 0, 3)] * 20)), "68,719,476,736"),
        (shard_of(file_of(CONTENT, *[(XORB, MANY, 0, 3)] * 2000)), "quota"),
    ],
)
def test_invalid_shard_is_rejected(hub: HubServer, shard: bytes, words: str) -> None:
    with uploading(hub, "ada/xet-shards") as client:
        put_xorb(client, *map(chunk, CHUNKS))
        document = put_shard(client, shard)
        assert (document["type"], document["retryable"]) == ("error", False)
        assert words in document["message"]
        assert client.post("/v1/shards", content=shard).status_code in {400, 403, 404, 409}
    assert commit_content(hub, "ada/xet-shards").status_code == 400
    assert hub.uploads == []


def test_xorbs_of_others_cannot_be_read(hub: HubServer) -> None:
    with uploading(hub, "ada/xet-mine") as mine, uploading(hub, "grace/xet-hers", "grace") as hers:
        put_xorb(mine, *map(chunk, CHUNKS))
        assert put_shard(hers, shard_of(GOOD))["type"] == "error"
        hers.base_url = mine.base_url
        assert put_xorb(hers, chunk(b"a")).status_code == 404
        assert hers.post("/v2/shards", content=shard_of(GOOD)).status_code == 404
    with uploading(hub, "ada/xet-other") as other:
        assert put_shard(other, shard_of(GOOD))["type"] == "error"


def test_xet_takes_its_own_tokens_alone(hub: HubServer) -> None:
    with uploading(hub, "ada/xet-tokens") as client, closing(Store(hub.directory)) as store:
        permit = client.headers["Authorization"].removeprefix("Bearer ")
        wrong = [hub.token("ada"), "x", permit[:-1] + ("A" if permit[-1] != "A" else "B")]
        wrong += [sign(store.upload_key, {"repo_id": 1}, 60), sign(store.xet_key, {"repo_id": 1}, -60)]
        for token in wrong:
            client.headers["Authorization"] = f"Bearer {token}"
            assert put_xorb(client, chunk(b"a")).status_code == 401
    with hub.http() as anonymous, hub.http("grace") as grace:
        address = "/api/models/ada/xet-tokens/xet-write-token/main"
        assert anonymous.get(address).status_code == 401
        assert grace.get(address).status_code == 403
        headers = {"Authorization": f"Bearer {permit}"}
        assert anonymous.get("/api/whoami-v2", headers=headers).status_code == 401
        assert anonymous.put(f"/lfs/upload?token={permit}", content=b"").status_code == 403


def test_xorbs_and_contents_have_a_quota(tmp_path: Path) -> None:
    with closing_hub(HubServer(tmp_path / "hub", quota=20_000)) as hub, uploading(hub, "ada/quota") as client:
        for number, status in ((1, 200), (2, 200), (3, 403)):
            answer = put_xorb(client, *[chunk(bytes(1000))] * 9, name=f"{number:064x}")
            assert answer.status_code == status, answer.text
        entries = [(f"{number:064x}", 9000, 0, 9) for number in (1, 2)]
        document = put_shard(client, shard_of(file_of(bytes(27_000), *entries, entries[0])))
        assert "quota of 20,000" in document["message"]


def test_repeated_chunks_do_not_evade_the_quota(tmp_path: Path) -> None:
    content = bytes(9000) * 3
    segments = [(XORB, 9000, 0, 9)] * 3
    with closing_hub(HubServer(tmp_path / "hub", quota=20_000)) as hub, uploading(hub, "ada/quota") as client:
        put_xorb(client, *[chunk(bytes(1000))] * 9)
        large = file_of(content, *segments)
        small = file_of(content, segments[0], sha256=hashlib.sha256(content).hexdigest())
        assert "two sizes" in put_shard(client, shard_of(large, small))["message"]
        assert "quota of 20,000" in put_shard(client, shard_of(large))["message"]
    assert hub.blobs == []


@pytest.mark.parametrize("is_chunked", [False, True])
def test_xorbs_count_as_large_as_they_are_kept(tmp_path: Path, is_chunked: bool) -> None:
    packed = chunk(bytes(9000), 1, lz4(bytes(9000)))
    with closing_hub(HubServer(tmp_path / "hub", quota=20_000)) as hub, uploading(hub, "ada/quota") as client:

        def put(number: int) -> httpx.Response:
            content = iter([packed]) if is_chunked else packed
            return client.post(f"/v1/xorbs/default/{number:064x}", content=content)

        with ThreadPoolExecutor(8) as threads:
            answers = list(threads.map(put, range(8)))
        assert sorted(answer.status_code for answer in answers) == [200] * 2 + [403] * 6
        assert all("wait 12 hours" in answer.text for answer in answers if answer.status_code == 403)
        again = next(number for number, answer in enumerate(answers) if answer.status_code == 200)
        assert put(again).status_code == 200
        kept = [path.stat().st_size for path in (hub.directory / "uploads/xet").glob("*/*/*")]
    assert (len(kept), sum(kept) < 20_000) == (2, True)


@contextmanager
def unpacked(directory: Path, size: int = 0) -> Iterator[HeldFile]:
    file = HeldFile.create(directory)
    file.write(bytes(size), size)
    try:
        yield file
    finally:
        file.let_go()


def test_xorbs_of_an_account_are_limited(tmp_path: Path) -> None:
    sessions = XetSessions(tmp_path / "xet")
    path = sessions.find(1, 7, sessions.open(1, 7))
    for number in range(XORBS):
        (path / f"{number:064x}").touch()
    with unpacked(tmp_path) as file, pytest.raises(HubFailure, match="5,001 parts"):
        sessions.add(file, path / XORB.replace("0", "f"), 10**12)


def test_xorbs_that_vanish_do_not_hide_others(tmp_path: Path) -> None:
    """Links without a target are listed and then missing, as are xorbs of a session that ends meanwhile."""
    sessions = XetSessions(tmp_path / "xet")
    for repo in range(1, 9):
        path = sessions.find(1, repo, sessions.open(1, repo))
        (path / "gone").symlink_to("nothing")
        (path / XORB).write_bytes(bytes(1000))
    with unpacked(tmp_path, 1000) as file, pytest.raises(HubFailure, match="9,000 bytes"):
        sessions.add(file, path / "new", 8999)


def test_assemblies_leave_threads_to_xorbs(own_hub: HubServer) -> None:
    """Xorbs that nobody has written yet keep the assemblies of four accounts waiting."""
    users = [f"user{number}" for number in range(4)]
    with ExitStack() as stack, ThreadPoolExecutor(4) as threads:
        clients = [stack.enter_context(uploading(own_hub, f"{user}/slow", user)) for user in users]
        paths = [path / XORB for path in (own_hub.directory / "uploads/xet").glob("*/*")]
        for path in paths:
            os.mkfifo(path)
        try:
            shards = [threads.submit(client.post, "/v2/shards", content=shard_of(GOOD)) for client in clients]
            eventually(lambda: len(own_hub.uploads) == 8)
            with uploading(own_hub, "ada/fast") as client:
                assert put_xorb(client, *map(chunk, CHUNKS)).status_code == 200
        finally:
            for path in paths:
                path.open("wb").close()
        assert [shard.result().status_code for shard in shards] == [500] * 4


# -- what stays --------------------------------------------------------------------------------------------


@contextmanager
def closing_hub(hub: HubServer) -> Iterator[HubServer]:
    try:
        yield hub
    finally:
        hub.end()


NOON = 1_800_014_400.0  # when a quarter of a day begins


def test_uploads_join_a_session_for_six_hours(tmp_path: Path) -> None:
    sessions = XetSessions(tmp_path / "xet")
    name = sessions.open(1, 7, NOON - 1)
    assert sessions.open(1, 7, NOON - 2 + SESSION_SECONDS) == name
    assert sessions.open(1, 77, NOON) != name
    assert sessions.open(1, 7, NOON - 1 + SESSION_SECONDS) != name


def test_sessions_end_when_idle(tmp_path: Path) -> None:
    sessions = XetSessions(tmp_path / "xet")
    name = sessions.open(1, 7, NOON)
    path = sessions.find(1, 7, sessions.open(1, 7, NOON + 5))
    assert path.name == name
    sessions.end_idle(NOON + 4 + 2 * SESSION_SECONDS)
    assert path.exists()
    sessions.end_idle(NOON + 6 + 2 * SESSION_SECONDS)
    assert not path.exists()


def test_session_that_stays_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    sessions = XetSessions(tmp_path / "xet")
    for account in range(8):
        sessions.open(account, 7, NOON)
        (tmp_path / f"xet/{account}/7-1-1").symlink_to("7-1-1")  # cannot be read
    sessions.end_idle(NOON + 3 * SESSION_SECONDS)
    assert len(list((tmp_path / "xet").glob("*/*"))) == len(caplog.records) == 8


async def test_deletions_go_on_after_an_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app = Quart(__name__)
    app.register_blueprint(make_blueprint(tmp_path / "hub", RegisteredClient("collidium-web")))
    async with app.test_app(), app.app_context():
        context.hub().unpackers.shutdown()
        task = asyncio.create_task(end_idle_hourly(hour=0))
        await until(lambda: len(caplog.records) > 1 or task.done())
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()
    assert {record.message for record in caplog.records} == {
        "Uploads by Xet that have expired are not deleted"
    }


def test_deletion_that_was_killed_is_finished(tmp_path: Path) -> None:
    sessions = XetSessions(tmp_path / "xet")
    path = sessions.find(1, 7, sessions.open(1, 7, NOON))
    (path / XORB).write_bytes(CONTENT)
    os.utime(path, (NOON, NOON))
    (tmp_path / "xet/ended").mkdir()
    path.rename(tmp_path / "xet/ended/00")
    sessions.end_idle(NOON + 3 * SESSION_SECONDS)
    assert list((tmp_path / "xet/ended").iterdir()) == []


@pytest.mark.parametrize("is_erased", [False, True])
def test_session_that_ended_takes_no_xorb(own_hub: HubServer, is_erased: bool) -> None:
    """A xorb that is still received then does not bring the session back."""
    directory = own_hub.directory / "uploads/xet"
    with uploading(own_hub, "ada/ended") as client:
        (session,) = directory.glob("*/*")

        def content() -> Iterator[bytes]:
            yield b"".join(map(chunk, CHUNKS[:2]))
            eventually(lambda: len(own_hub.uploads) == 1)
            sessions = XetSessions(directory)
            sessions.erase(int(session.parent.name)) if is_erased else sessions.end(session)
            yield chunk(CHUNKS[2])

        answer = client.post(f"/v1/xorbs/default/{XORB}", content=content())
    assert (answer.status_code, "start it again" in answer.text) == (409, True)
    assert list(directory.glob("*/*")) == own_hub.uploads == []


def test_erased_account_leaves_no_xorbs(tmp_path: Path) -> None:
    with closing(Store(tmp_path)) as store:
        with store.database.writing() as db:
            anna, ben = (accounts.add(db, name).id for name in ("anna", "ben"))
        names = [store.sessions.open(account, 1) for account in (anna, ben)]
        store.erase(anna)
        store.tidy()
        assert [path.name for path in (tmp_path / "uploads/xet").glob("*/*")] == names[1:]


def test_repository_that_is_gone_takes_no_xorbs(own_hub: HubServer) -> None:
    with uploading(own_hub, "ada/gone") as client:
        put_xorb(client, *map(chunk, CHUNKS))
        own_hub.api("ada").delete_repo("ada/gone")
        assert put_xorb(client, chunk(b"a")).status_code == 404
        assert client.post("/v2/shards", content=shard_of(GOOD)).status_code == 404
    assert own_hub.blobs == []


SCRIPT = """
import sys
from huggingface_hub import HfApi
for path in sys.argv[2:]:
    HfApi().upload_file(path_or_fileobj=path, path_in_repo="file.bin", repo_id=sys.argv[1])
"""


def start_client(hub: HubServer, home: Path, repo: str, *paths: Path) -> subprocess.Popen[str]:
    """The installed client, which uploads by Xet, with its caches in ``home``."""
    hub.api("ada").create_repo(repo, exist_ok=True)
    variables = {"HF_ENDPOINT": hub.url, "HF_TOKEN": hub.token("ada"), "HF_HUB_DISABLE_TELEMETRY": "1"}
    variables["HF_XET_CLIENT_RETRY_BASE_DELAY"] = "200ms"
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, repo, *map(str, paths)],
        env=isolated_environment(home, variables),
        stderr=subprocess.PIPE,
        text=True,
    )


def downloaded(hub: HubServer, repo: str) -> bytes:
    with hub.http("ada") as client:
        return client.get(f"/{repo}/resolve/main/file.bin").content


def test_upload_survives_a_kill_of_the_hub(own_hub: HubServer, tmp_path: Path) -> None:
    content = random.Random(2).randbytes(100 * 1024**2)
    (tmp_path / "large").write_bytes(content)
    client = start_client(own_hub, tmp_path, "ada/killed", tmp_path / "large")
    eventually(lambda: any((own_hub.directory / "uploads/xet").glob("*/*/*")))
    own_hub.end(signal.SIGKILL)
    own_hub.start()
    _, errors = client.communicate(timeout=60)
    assert client.returncode == 0, errors
    assert downloaded(own_hub, "ada/killed") == content
    assert own_hub.uploads == []


def test_upload_after_xorbs_were_lost(own_hub: HubServer, tmp_path: Path) -> None:
    """The client still believes that they are there: it fails once, and the next time sends them again."""
    content = random.Random(3).randbytes(11 * 1024**2)
    for name, more in (("first", b""), ("second", b"more")):
        (tmp_path / name).write_bytes(content + more)
    runs = [start_client(own_hub, tmp_path, "ada/lost", tmp_path / "first").communicate(timeout=60)]
    for xorb in (own_hub.directory / "uploads/xet").glob("*/*/*"):
        xorb.unlink()
    runs += [
        start_client(own_hub, tmp_path, "ada/lost", tmp_path / "second").communicate(timeout=60)
        for _ in range(2)
    ]
    assert ["start it again" in errors for _, errors in runs] == [False, True, False], json.dumps(runs)
    assert downloaded(own_hub, "ada/lost") == content + b"more"
