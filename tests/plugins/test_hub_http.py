"""The local hub by plain HTTP: invalid and hostile requests, kills and races."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from quart import Quart
from tests.hub import HubServer, token_on
from tests.waiting import eventually, until

from collidium.api import bodies
from collidium_plugins.local_hub.openid.requests import RegisteredClient
from collidium_plugins.local_hub.web import make_blueprint
from collidium_plugins.local_hub.web.context import hub as hub_of_app

CONTENT = bytes(range(256)) * 40


def commit(
    client: httpx.Client, repo: str, *changes: dict[str, Any], kind: str = "models", **header: str
) -> httpx.Response:
    lines: list[dict[str, Any]] = [{"key": "header", "value": {"summary": "change", **header}}, *changes]
    return client.post(f"/api/{kind}/{repo}/commit/main", content="\n".join(map(json.dumps, lines)))


def add(path: str, content: bytes = CONTENT) -> dict[str, Any]:
    encoded = base64.b64encode(content).decode()
    return {"key": "file", "value": {"path": path, "content": encoded, "encoding": "base64"}}


def announced(content: bytes, size: int | None = None) -> dict[str, Any]:
    oid = hashlib.sha256(content).hexdigest()
    objects = [{"oid": oid, "size": len(content) if size is None else size}]
    return {"operation": "upload", "objects": objects}


def batch(client: httpx.Client, repo: str, content: bytes, size: int | None = None) -> dict[str, Any]:
    answer = client.post(f"/{repo}.git/info/lfs/objects/batch", json=announced(content, size))
    assert answer.status_code == 200, answer.text
    item: dict[str, Any] = answer.json()["objects"][0]
    return item


# -- ranges ------------------------------------------------------------------------------------------------

SIZE = len(CONTENT)


@pytest.fixture(scope="module")
def file_url(hub: HubServer) -> str:
    hub.api("ada").create_repo("ada/ranges", exist_ok=True)
    with hub.http("ada") as client:
        assert commit(client, "ada/ranges", add("a/hits.bin")).status_code == 200
    return "/ada/ranges/resolve/main/a/hits.bin"


@pytest.mark.parametrize(
    ("header", "start", "stop"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-99", 5, 100),
        ("bytes=100-", 100, SIZE),
        ("bytes=-100", SIZE - 100, SIZE),
        (f"bytes=-{SIZE * 3}", 0, SIZE),
        (f"bytes={SIZE - 1}-{SIZE * 3}", SIZE - 1, SIZE),
        ("Bytes = 1 - 2".replace("B", "b"), 1, 3),
    ],
)
def test_ranges(hub: HubServer, file_url: str, header: str, start: int, stop: int) -> None:
    with hub.http() as client:
        answer = client.get(file_url, headers={"Range": header})
        head = client.head(file_url, headers={"Range": header})
    assert answer.status_code == head.status_code == 206
    assert answer.content == CONTENT[start:stop]
    assert answer.headers["Content-Range"] == f"bytes {start}-{stop - 1}/{SIZE}"
    assert answer.headers["Content-Length"] == head.headers["Content-Length"] == str(stop - start)


@pytest.mark.parametrize(
    "header",
    ["bytes=5-2", "bytes=0-1,3-4", "bytes=-", "bytes=a-b", "hits=0-1", "bytes=\u0661-", "bytes=--1", "", "9"],
)
def test_an_invalid_range_is_ignored(hub: HubServer, file_url: str, header: str) -> None:
    with hub.http() as client:
        answer = client.get(file_url, headers={"Range": header.encode()})
    assert answer.status_code == 200
    assert answer.content == CONTENT


@pytest.mark.parametrize(
    "header", [f"bytes={SIZE}-", f"bytes={SIZE + 5}-{SIZE + 9}", "bytes=" + "9" * 19 + "-"]
)
def test_a_range_outside_the_file_is_416(hub: HubServer, file_url: str, header: str) -> None:
    with hub.http() as client:
        answer = client.get(file_url, headers={"Range": header})
    assert answer.status_code == 416
    assert answer.headers["Content-Range"] == f"bytes */{SIZE}"


def test_the_headers_of_a_file(hub: HubServer, file_url: str) -> None:
    with hub.http() as client:
        head = client.head(file_url)
        changed = client.get(file_url, headers={"Range": "bytes=5-9", "If-Range": '"other"'})
        same = client.get(file_url, headers={"Range": "bytes=5-9", "If-Range": head.headers["ETag"]})
    assert head.status_code == 200
    assert head.headers["Content-Length"] == str(SIZE)
    assert head.headers["Accept-Ranges"] == "bytes"
    assert len(head.headers["X-Repo-Commit"]) == 40
    blob = hashlib.sha1(b"blob %d\0" % SIZE + CONTENT, usedforsecurity=False).hexdigest()
    assert head.headers["ETag"] == f'"{blob}"'
    assert "X-Linked-Etag" not in head.headers
    assert head.headers["X-Content-Type-Options"] == "nosniff"
    assert changed.content == CONTENT
    assert same.content == CONTENT[5:10]


# -- errors as clients read them ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "path", "status", "code"),
    [
        (None, "/api/models/ada/nowhere", 401, "RepoNotFound"),
        ("ada", "/api/models/ada/nowhere", 404, "RepoNotFound"),
        ("ada", "/api/models/ada/ranges/revision/no", 404, "RevisionNotFound"),
        ("ada", "/api/models/ada/ranges/revision/%F0%9F%98%80%0A", 404, "RevisionNotFound"),
        ("ada", "/api/models/ada/ranges/tree/main/no", 404, "EntryNotFound"),
        ("ada", "/ada/ranges/resolve/main/no", 404, "EntryNotFound"),
        ("ada", "/ada/ranges/resolve/main/", 404, "EntryNotFound"),
        ("ada", "/ada/ranges/resolve/main/a", 404, "EntryNotFound"),
        ("ada", "/ada/ranges/resolve/main/a//hits.bin", 404, "EntryNotFound"),
        ("ada", "/ada/ranges/resolve/main/%2e%2e/%2e%2e/hub.sqlite3", 404, "EntryNotFound"),
        ("ada", "/ada/ranges/resolve/main/..%2f..%2fhub.sqlite3", 404, "EntryNotFound"),
        ("ada", "/ada/ranges/resolve/main/a%00%0d%0aX: y", 404, "EntryNotFound"),
        ("ada", "/ada/ranges/resolve/main/%ff", 400, None),
        ("ada", "/ada%2franges/resolve/main/a", 404, None),
        ("ada", "/api/models/ada%2Franges", 200, None),
        ("ada", "/api/models/ada/ranges/tree/main/a", 200, None),
        ("ada", "/api/models/ada/ranges/tree/main/a?cursor=%00/../x&limit=1", 200, None),
        ("ada", "/api/models/ada/ranges/tree/main?limit=0", 400, None),
        ("ada", "/api/models/ada/ranges/tree/main?limit=-1", 400, None),
        ("ada", "/api/models/ada/ranges/tree/main?limit=" + "9" * 5000, 200, None),
        ("ada", "/api/models?limit=%C2%B2", 400, None),
        ("ada", "/api/models?cursor=x", 400, None),
        ("ada", "/api/models?cursor=W10=", 400, None),
        ("ada", "/api/models?cursor=%C3%BC", 400, None),
        ("ada", "/api/models?cursor=" + base64.b64encode(b'["", 1e400]').decode(), 400, None),
        ("ada", "/api/models?sort=x", 400, None),
        ("ada", "/api/models?search=" + "x" * 500, 400, None),
        ("ada", "/api/models?search=%00%ff%27", 200, None),
        ("ada", "/api/models?" + "&".join(f"filter={n}" for n in range(50)), 400, None),
        ("ada", "/api/models/ada/ranges/commits/main?cursor=" + "0" * 40, 404, "RevisionNotFound"),
        ("ada", "/api/xet/x", 404, None),
        ("ada", "/api/models/ada/ranges/discussions", 501, None),
        ("ada", "/api/models/ada/ranges/lfs-files?cursor=x", 400, None),
        (None, "/api/models/ada/none/lfs-files", 401, "RepoNotFound"),
        ("ada", "/api/models/ada/ranges/auth-check/write", 200, None),
        ("grace", "/api/models/ada/ranges/auth-check/write", 403, None),
        ("ada", "/api/spaces/ada/none/runtime", 501, None),
        ("ada", "/api/kernels", 404, None),
        ("ada", "/", 404, None),
        ("ada", "//", 404, None),
        ("ada", "/api/whoami-v2/", 404, None),
        (None, "/api/whoami-v2", 401, None),
        (None, "/api/spaces", 200, None),
    ],
)
def test_errors_have_the_codes_of_clients(
    hub: HubServer, file_url: str, user: str | None, path: str, status: int, code: str | None
) -> None:
    with hub.http(user) as client:
        answer = client.get(hub.url + path)
    assert answer.status_code == status, answer.text
    assert answer.headers.get("X-Error-Code") == code
    if status >= 400:
        assert answer.json()["error"]
        assert answer.headers["X-Error-Message"]


@pytest.mark.parametrize(
    "header", ["Bearer", "Bearer unknown", "Basic YTpi", "x", "Bearer ü", "Bearer " + "x" * 9000]
)
def test_bad_tokens_are_401(hub: HubServer, file_url: str, header: str) -> None:
    with hub.http() as client:
        for path in ("/api/whoami-v2", file_url, "/api/models"):
            answer = client.get(path, headers={"Authorization": header.encode("latin-1")})
            assert answer.status_code == 401


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "POST"])
def test_other_methods_are_404(hub: HubServer, method: str) -> None:
    with hub.http() as client:
        assert client.request(method, "/api/whoami-v2").status_code == 404


def test_a_forwarded_scheme_is_not_trusted(hub: HubServer) -> None:
    with hub.http() as client:
        answer = client.get("/.well-known/openid-configuration", headers={"X-Forwarded-Proto": "https"})
    assert answer.json()["issuer"] == hub.url


@pytest.mark.parametrize("host", ["", "x", "a b", "[::1", "x:99999999", "ü", 'a">b', "a/b", "a@b"])
def test_an_invalid_host_is_no_server_error(hub: HubServer, host: str) -> None:
    with socket.create_connection(("127.0.0.1", hub.port), timeout=10) as connection:
        head = f"GET /hub/api/models?limit=1 HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        status = int(connection.makefile("rb").readline().split()[1])
    assert status < 500


HOSTILE: list[Any] = [
    None, 0, -1, 1.5, True, "", "x", "\ud800", "\0", "../x", "/x", "a/../b", ".git/config", "x" * 2000, [],
    {}, "a\\b", "a\nb", "con/" * 40, ["x"], {"a": 1}, "a//b", ".", 10**30, "0" * 40, "refs/heads/main",
]  # fmt: skip


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: ascii(value)[:20])
def test_hostile_values_cause_no_server_error(hub: HubServer, file_url: str, value: Any) -> None:
    repo = "/api/models/ada/ranges"
    lfs = "/ada/ranges.git/info/lfs"
    with hub.http("ada") as client:
        before = client.get(repo).json()
        documents: list[tuple[str, str, Any]] = [
            ("POST", "/api/repos/create", value),
            ("POST", "/api/repos/create", {"name": value, "type": "model"}),
            ("POST", "/api/repos/create", {"name": "ranges", "organization": value}),
            ("POST", "/api/repos/create", {"name": "ranges", "type": value}),
            ("DELETE", "/api/repos/delete", {"name": value}),
            ("DELETE", "/api/repos/delete", {"name": "none", "organization": value, "type": value}),
            ("POST", "/api/validate-yaml", {"content": value}),
            ("POST", f"{repo}/preupload/main", {"files": value}),
            ("POST", f"{repo}/preupload/main", {"files": [value]}),
            ("POST", f"{repo}/preupload/main", {"files": [{"path": value, "size": 1}]}),
            ("POST", f"{repo}/preupload/main", {"files": [{"path": "x", "size": value}]}),
            ("POST", f"{lfs}/objects/batch", {"operation": "upload", "objects": value}),
            ("POST", f"{lfs}/objects/batch", {"operation": "upload", "objects": [{"oid": value, "size": 1}]}),
            (
                "POST",
                f"{lfs}/objects/batch",
                {"operation": "upload", "objects": [{"oid": "a" * 64, "size": value}]},
            ),
            ("POST", f"{lfs}/objects/batch", {"operation": value, "objects": []}),
            ("POST", f"{lfs}/verify", {"oid": value, "size": value}),
            ("POST", f"{repo}/branch/new", {"startingPoint": value or "none"}),
            ("POST", f"{repo}/tag/main", {"tag": value if value != "x" else None}),
            ("POST", f"{repo}/paths-info/main", {"paths": [value]}),
            ("POST", f"{repo}/paths-info/main", {"paths": value}),
            ("POST", f"{repo}/paths-info/main", value),
        ]
        for method, path, document in documents:
            answer = client.request(method, path, content=json.dumps(document))
            assert answer.status_code < 500, (method, path, document, answer.text)
        for path in ("branch", "tag", "tree", "revision", "commits", "preupload", "commit"):
            answer = client.post(f"{repo}/{path}/{quote(ascii(value), safe='')}", json={})
            assert answer.status_code < 500
        changes = [
            {"key": value, "value": {}},
            {"key": "file", "value": value},
            {"key": "file", "value": {"path": value, "content": "", "encoding": "base64"}},
            {"key": "file", "value": {"path": "ok", "content": value, "encoding": "base64"}},
            {"key": "file", "value": {"path": "ok", "content": "", "encoding": value}},
            {"key": "lfsFile", "value": {"path": "ok", "oid": value, "algo": "sha256"}},
            {"key": "lfsFile", "value": {"path": "ok", "oid": "a" * 64, "algo": value}},
            {"key": "deletedFile", "value": {"path": value}},
            {"key": "deletedFolder", "value": {"path": value}},
        ]
        for change in changes:
            assert commit(client, "ada/ranges", change).status_code < 500, change
        for header in ("summary", "description", "parentCommit"):
            assert commit(client, "ada/ranges", add("h", os.urandom(3)), **{header: value}).status_code < 500
        after = client.get(repo).json()
        names = {file["rfilename"] for file in after["siblings"]}
        assert names <= {"a/hits.bin", "h", "ok", "x", "0", "0" * 40, "refs/heads/main"}, names
        assert before["id"] == after["id"]


def test_conflicting_paths_are_rejected(hub: HubServer, repo: str) -> None:
    with hub.http("ada") as client:
        assert commit(client, repo, add("a"), add("d/e")).status_code == 200
        assert commit(client, repo, add("a/b")).status_code == 400
        assert commit(client, repo, add("d")).status_code == 400
        assert commit(client, repo, {"key": "deletedFile", "value": {"path": "d"}}).status_code == 404
        assert commit(client, repo, {"key": "deletedFolder", "value": {"path": "a"}}).status_code == 404
        assert commit(client, repo, {"key": "deletedFile", "value": {"path": "d/none"}}).status_code == 404
        half = commit(client, repo, add("new"), {"key": "deletedFile", "value": {"path": "none"}})
        assert half.status_code == 404
        names = [file["rfilename"] for file in client.get(f"/api/models/{repo}").json()["siblings"]]
    assert names == ["a", "d/e"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{}", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b'{"key": "file", "value": {"path": "x", "content": ""}}', 400),
        (b'{"key": "header", "value": {"summary": "x"}}\n' + b"x" * 15_000_000, 413),
        (b'{"key": "header", "value": {}}', 400),
    ],
)
def test_invalid_commits_are_rejected(hub: HubServer, file_url: str, body: bytes, status: int) -> None:
    with hub.http("ada") as client:
        assert client.post("/api/models/ada/ranges/commit/main", content=body).status_code == status
    assert hub.uploads == []


def test_an_encoded_slash_separates_no_names(hub: HubServer, file_url: str) -> None:
    with hub.http("ada") as client:
        for path in ("ada%2Franges%2Fbranch/x", "ada%2Franges/branch/tag/x"):
            assert client.delete(f"/api/models/{path}").status_code == 404


# -- contents by LFS ---------------------------------------------------------------------------------------


def test_an_upload_must_match_its_announcement(hub: HubServer, repo: str) -> None:
    content = os.urandom(1000)
    with hub.http("ada") as client:
        actions = batch(client, repo, content)["actions"]
        upload, verify = actions["upload"]["href"], actions["verify"]["href"]
        assert upload.startswith(f"{hub.url}/lfs/upload?token=")  # paths are logged, queries are not
        document = {"oid": hashlib.sha256(content).hexdigest(), "size": 1000}
        lfs = {"key": "lfsFile", "value": {"path": "x.bin", "algo": "sha256", **document}}
        assert client.post(verify, json=document).status_code == 404
        assert commit(client, repo, lfs).status_code == 400
        with hub.http() as anonymous:
            for wrong in (content[:-1], content[:-1] + b"?", b""):
                assert anonymous.put(upload, content=wrong).status_code == 400
            assert anonymous.put(upload, content=content + b"?").status_code == 413
            for forged in (upload[:-9], upload.replace("token=", "token=e"), upload + "%C3%BC"):
                assert anonymous.put(forged, content=content).status_code == 403
            assert hub.uploads == []
            assert client.post(verify, json=document).status_code == 404
            assert anonymous.put(upload, content=content).status_code == 200
        assert client.post(verify, json=document).status_code == 200
        assert "actions" not in batch(client, repo, content)
        assert commit(client, repo, lfs).status_code == 200
        answer = client.get(f"/{repo}/resolve/main/x.bin")
    assert answer.content == content
    assert answer.headers["X-Linked-Etag"] == f'"{document["oid"]}"'
    assert answer.headers["X-Linked-Size"] == "1000"


def test_a_hash_gives_no_access_to_a_file(hub: HubServer) -> None:
    secret = os.urandom(1000)
    document = {"oid": hashlib.sha256(secret).hexdigest(), "size": 1000}
    hub.api("ada").create_repo("ada/hidden", private=True)
    hub.api("grace").create_repo("grace/curious")
    with hub.http("ada") as ada, hub.http("grace") as grace:
        assert ada.put(
            batch(ada, "ada/hidden", secret)["actions"]["upload"]["href"], content=secret
        ).is_success
        assert "actions" in batch(grace, "grace/curious", secret), "the hub reports that it has the content"
        lfs = {"key": "lfsFile", "value": {"path": "x.bin", "algo": "sha256", **document}}
        assert commit(grace, "grace/curious", lfs).status_code == 400


def test_deleting_a_repository_deletes_only_its_own_contents(own_hub: HubServer) -> None:
    api = own_hub.api("ada")
    with own_hub.http("ada") as client:
        for name in ("one", "two"):
            api.create_repo(f"ada/{name}")
            assert commit(client, f"ada/{name}", add("shared"), add("own", name.encode())).status_code == 200
        assert len(own_hub.blobs) == 3
        upload = batch(client, "ada/one", b"late")["actions"]["upload"]["href"]
        api.delete_repo("ada/one")
        assert len(own_hub.blobs) == 2
        assert client.put(upload, content=b"late").status_code == 404
        assert len(own_hub.blobs) == 2
        assert client.get("/ada/two/resolve/main/shared").content == CONTENT
        api.create_repo("ada/one")
        assert client.get("/api/models/ada/one").json()["siblings"] == []
        assert client.put(upload, content=b"late").status_code == 404


# -- kills and races ---------------------------------------------------------------------------------------


def test_a_kill_during_an_upload_leaves_a_consistent_store(own_hub: HubServer) -> None:
    api = own_hub.api("ada")
    api.create_repo("ada/finder")
    content = os.urandom(30 * 1024**2)
    with own_hub.http("ada") as client:
        assert commit(client, "ada/finder", add("before")).status_code == 200
        upload = httpx.URL(batch(client, "ada/finder", content)["actions"]["upload"]["href"])
        connection = socket.create_connection(("127.0.0.1", own_hub.port))
        head = f"PUT {upload.raw_path.decode()} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content[: len(content) // 2])
        eventually(lambda: bool(own_hub.uploads) and own_hub.uploads[0].stat().st_size > 1_000_000)
        own_hub.end(signal.SIGKILL)
        connection.close()
        assert len(own_hub.uploads) == 1
        own_hub.start()
        eventually(lambda: own_hub.uploads == [])
        assert len(own_hub.blobs) == 1
        assert client.get("/ada/finder/resolve/main/before").content == CONTENT
        # The address that was signed before the kill still works: the key is kept.
        assert client.put(str(upload), content=content).status_code == 200
        lfs = {"path": "x.bin", "algo": "sha256", "oid": hashlib.sha256(content).hexdigest()}
        assert commit(client, "ada/finder", {"key": "lfsFile", "value": lfs}).status_code == 200
        assert client.get("/ada/finder/resolve/main/x.bin").content == content


def test_acknowledged_commits_survive_a_kill(own_hub: HubServer) -> None:
    own_hub.api("ada").create_repo("ada/finder")
    answered: list[str] = []

    def write() -> None:
        with own_hub.http("ada") as client:
            for number in range(1000):
                try:
                    if commit(client, "ada/finder", add(f"f{number}", b"%d" % number)).is_success:
                        answered.append(f"f{number}")
                except httpx.TransportError:
                    return

    writer = threading.Thread(target=write)
    writer.start()
    eventually(lambda: len(answered) >= 20)
    own_hub.end(signal.SIGKILL)
    writer.join()
    own_hub.start()
    with own_hub.http() as client:
        names = {file["rfilename"] for file in client.get("/api/models/ada/finder").json()["siblings"]}
        commits = client.get("/api/models/ada/finder/commits/main", params={"limit": 1000}).json()
        assert set(answered) <= names
        assert len(commits) == len(names) + 1
        for name in names:
            assert client.get(f"/ada/finder/resolve/main/{name}").content == name[1:].encode()


def test_the_quota_covers_all_repositories_of_an_account(tmp_path: Path) -> None:
    server = HubServer(tmp_path / "hub", quota=100_000)
    first, second = (os.urandom(60_000) for _ in range(2))
    with server.http("ada") as ada, server.http("ben") as ben:
        for client, name in ((ada, "one"), (ada, "two"), (ben, "one")):
            assert client.post("/api/repos/create", json={"name": name}).status_code == 200
        early, late = (batch(ada, "ada/one", file)["actions"]["upload"]["href"] for file in (first, second))
        assert ada.put(early, content=first).status_code == 200
        kept = server.blobs
        # Also where the address was signed while there was room, in another repository and in a commit.
        refused = [
            ada.put(late, content=second),
            commit(ada, "ada/two", add("f", second)),
            ada.post("/ada/two.git/info/lfs/objects/batch", json=announced(second)),
        ]
        for answer in refused:
            assert answer.status_code == 403
            assert "a quota of 100,000" in answer.headers["X-Error-Message"]
        assert server.blobs == kept
        assert commit(ben, "ben/one", add("f", second)).status_code == 200
        ada.request("DELETE", "/api/repos/delete", json={"name": "one"}).raise_for_status()
        assert commit(ada, "ada/two", add("f", second)).status_code == 200
    server.end()


def test_a_rejected_commit_leaves_no_content(own_hub: HubServer) -> None:
    with own_hub.http("ada") as client:
        assert client.post("/api/repos/create", json={"name": "finder"}).status_code == 200
        assert commit(client, "ada/finder", add("kept", b"kept")).status_code == 200
        before = own_hub.blobs
        fresh = [add(f"f{number}", os.urandom(9)) for number in range(3)]
        nonsense = {"key": "file", "value": {"path": "../up", "content": ""}}
        missing = {"key": "deletedFile", "value": {"path": "none"}}
        # Refused while it is read, by its parent, and while it is applied; the last names a content in use.
        assert commit(client, "ada/finder", *fresh, nonsense).status_code == 400
        assert commit(client, "ada/finder", *fresh, parentCommit="0" * 40).status_code == 412
        assert commit(client, "ada/finder", *fresh, add("again", b"kept"), missing).status_code == 404
        assert own_hub.blobs == before
        assert client.get("/ada/finder/resolve/main/kept").content == b"kept"


def test_concurrent_commits_are_kept_and_a_parent_is_used_once(hub: HubServer, repo: str) -> None:
    with hub.http("ada") as client:
        parent = client.get(f"/api/models/{repo}").json()["sha"]

        def write(number: int) -> int:
            # The beginning of the commit's id suffices.
            header = {"parentCommit": parent[: 7 + 4 * number]} if number < 8 else {}
            with hub.http("ada") as own:
                return commit(own, repo, add(f"f{number}", b"%d" % number), **header).status_code

        with ThreadPoolExecutor(8) as pool:
            conditional = list(pool.map(write, range(8)))
            free = list(pool.map(write, range(8, 16)))
        files = client.get(f"/api/models/{repo}").json()["siblings"]
    assert sorted(conditional) == [200] + [412] * 7
    assert free == [200] * 8
    assert len(files) == 9


def test_concurrent_creations_make_one_repository(hub: HubServer) -> None:
    def create(_: int) -> int:
        with hub.http("ada") as client:
            return client.post("/api/repos/create", json={"name": "Raced"}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(create, range(8))) == [200] + [409] * 7
    with hub.http("ada") as client:
        assert client.post("/api/repos/create", json={"name": "raced"}).status_code == 409


def test_two_processes_share_a_store(own_hub: HubServer) -> None:
    other = type(own_hub)(own_hub.directory)
    own_hub.api("ada").create_repo("ada/shared")
    token = {"Authorization": f"Bearer {own_hub.token('ada')}"}
    with own_hub.http("ada") as one, httpx.Client(base_url=other.url, headers=token, trust_env=False) as two:
        upload = batch(one, "ada/shared", b"content")["actions"]["upload"]["href"]
        there = upload.replace(f":{own_hub.port}/", f":{other.port}/")
        assert two.put(there, content=b"content").status_code == 200
        lfs = {"path": "x", "algo": "sha256", "oid": hashlib.sha256(b"content").hexdigest()}
        assert commit(one, "ada/shared", {"key": "lfsFile", "value": lfs}).status_code == 200
        assert two.get("/ada/shared/resolve/main/x").content == b"content"
    other.end()


# -- large commits -----------------------------------------------------------------------------------------


async def test_large_commits_do_not_hold_others_up(tmp_path: Path) -> None:
    """While all threads that read commits are busy, a repository is created; one account has one of them."""
    directory, busy = tmp_path / "hub", threading.Event()
    headers = {name: {"Authorization": f"Bearer {token_on(directory, name)}"} for name in ("ada", "bob")}
    app = Quart("hub", static_folder=None)
    bodies.install(app)
    app.register_blueprint(make_blueprint(directory, RegisteredClient("collidium-web")))
    header = json.dumps({"key": "header", "value": {"summary": "change"}})

    async def call(name: str, path: str, **body: object) -> int:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://hub/hub/api/") as client:
            return (await client.post(path, headers=headers[name], **body)).status_code

    async with app.test_app():
        assert await call("ada", "repos/create", json={"name": "large", "organization": None}) == 200
        async with app.app_context():
            threads, turns = hub_of_app().committers, hub_of_app().committing
        for _ in range(threads._max_workers):
            threads.submit(busy.wait)
        commits = [asyncio.create_task(call("ada", "models/ada/large/commit/main", content=header))]
        try:
            await until(lambda: threads._work_queue.qsize() == 1)  # the first has its account's turn
            commits.append(asyncio.create_task(call("ada", "models/ada/large/commit/main", content=header)))
            assert await call("bob", "repos/create", json={"name": "small", "organization": None}) == 200
            assert not any(task.done() for task in commits)
            # A client that disconnects does not give its account another thread.
            commits[0].cancel()
            await asyncio.gather(commits[0], return_exceptions=True)
            commits.append(asyncio.create_task(call("ada", "models/ada/large/commit/main", content=header)))
            await until(lambda: any(len(turn._waiters or ()) == 2 for turn in turns.values()), 20)
            assert threads._work_queue.qsize() == 1
        finally:
            busy.set()
        assert await asyncio.gather(*commits[1:]) == [200, 200]
