"""Files in a bucket of a real S3 server: the storage's contract, and errors of buckets."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import IO, Any

import pytest
import trustme
from tests.s3 import READER, USER, S3Server, client, s3_settings, s3_variables

from collidium import plugins, settings
from collidium.contracts.storage import MissingFile, StorageUnavailable
from collidium.errors import ConfigurationError
from collidium.server.doctor import examine
from collidium.testing.conformance import check_storage
from collidium.testing.server import ServerProcess
from collidium_plugins.storage_s3 import S3Storage, collidium_storages

MEBIBYTE = 1024**2


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of an account that may use its bucket, and no other, as operators give them."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", USER[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", USER[1])


@pytest.fixture(scope="module")
def moto() -> Iterator[str]:
    """A second implementation, with the bucket `files`."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    client(f"http://{host}:{port}", *USER).create_bucket(Bucket="files")
    yield f"http://{host}:{port}"
    server.stop()


def storage_on(url: str, bucket: str = "s3://files", **others: object) -> S3Storage:
    return S3Storage(settings.load(**s3_settings(url, bucket, **others)))


async def test_it_keeps_the_contract(s3_server: S3Server, unused_tcp_port: int, tmp_path: Path) -> None:
    down = storage_on(f"http://127.0.0.1:{unused_tcp_port}")
    await check_storage(storage_on(s3_server.url), tmp_path, unreachable=down)


async def test_it_keeps_the_contract_on_another_server(moto: str, tmp_path: Path) -> None:
    await check_storage(storage_on(moto, "s3://files/below/here", storage_s3_checksum=""), tmp_path)


@pytest.fixture
async def encrypted(s3_server: S3Server, tmp_path: Path) -> AsyncIterator[str]:
    """The server's address with TLS, by an authority in the file `authority.pem`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "authority.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def pass_on(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                target.write(data)
                await target.drain()
        target.close()

    async def connect(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        port = int(s3_server.url.rpartition(":")[2])
        answers, requests = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pass_on(source, requests), pass_on(answers, target))

    async with await asyncio.start_server(connect, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_files_go_over_tls(encrypted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where checksums follow the body; the file has two parts."""
    content = b"PAR1" * (3 * MEBIBYTE)
    (tmp_path / "file").write_bytes(content)
    unknown = storage_on(encrypted, "s3://files/tls")
    with pytest.raises(StorageUnavailable, match="SSLError"):
        await unknown.put("a", tmp_path / "file")
    await unknown.close()
    monkeypatch.setenv("AWS_CA_BUNDLE", str(tmp_path / "authority.pem"))
    storage = storage_on(encrypted, "s3://files/tls")
    await storage.check()
    await storage.put("a", tmp_path / "file")
    await storage.get("a", tmp_path / "copy")
    await storage.close()
    assert (tmp_path / "copy").read_bytes() == content


async def test_a_hanging_store_blocks_nothing_else() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        storage = storage_on(f"http://127.0.0.1:{silent.getsockname()[1]}")
        calls = [asyncio.create_task(storage.exists(f"file-{number}")) for number in range(50)]
        await asyncio.wait(calls, timeout=0.1)
        async with asyncio.timeout(20):
            await asyncio.to_thread(print)
        await storage.close()
    # Its end lets the calls end.
    await asyncio.gather(*calls, return_exceptions=True)


async def test_prefixes_share_a_bucket(s3_server: S3Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"PAR1")
    one, other = (storage_on(s3_server.url, f"s3://files/{name}/deep") for name in ("one", "other"))
    await one.put("a", tmp_path / "file")
    assert not await other.exists("a")
    await storage_on(s3_server.url).get("one/deep/a", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"PAR1"


class BreakingPath(type(Path())):  # the class of this system
    """A file whose disk fails after 30 MiB."""

    def open(self, *args: Any, **options: Any) -> IO[bytes]:
        file = super().open(*args, **options)

        class Breaking:
            def read(self, size: int = -1) -> bytes:
                if file.tell() >= 30 * MEBIBYTE:
                    raise OSError(5, "Input/output error")
                return bytes(file.read(size))

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def __enter__(self) -> Breaking:
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

        return Breaking()  # what is used of one


async def test_a_put_that_fails_midway_leaves_nothing(s3_server: S3Server, tmp_path: Path) -> None:
    storage = storage_on(s3_server.url, "s3://files/midway")
    (tmp_path / "file").write_bytes(b"before")
    await storage.put("replaced", tmp_path / "file")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(60 * MEBIBYTE)
    for key in ("new", "replaced"):
        with pytest.raises((OSError, StorageUnavailable)):
            await storage.put(key, BreakingPath(tmp_path / "large"))
    assert not await storage.exists("new")
    await storage.get("replaced", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"before"
    unfinished = s3_server.client().list_multipart_uploads(Bucket="files", Prefix="midway/")
    assert unfinished.get("Uploads", []) == []


async def test_a_get_of_a_server_that_dies_leaves_nothing(own_s3: S3Server, tmp_path: Path) -> None:
    storage = storage_on(own_s3.url)
    (tmp_path / "file").write_bytes(bytes(20 * MEBIBYTE))
    await storage.put("a", tmp_path / "file")
    own_s3.kill()
    (tmp_path / "got").mkdir()
    for call in (storage.exists("a"), storage.delete("a"), storage.get("a", tmp_path / "got" / "copy")):
        with pytest.raises(StorageUnavailable, match="cannot be reached"):
            await call
    assert list((tmp_path / "got").iterdir()) == []


def test_memory_does_not_grow_with_the_file(s3_server: S3Server, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio\n"
        "from pathlib import Path\n"
        "from collidium import settings\n"
        "from collidium_plugins.storage_s3 import S3Storage\n"
        "storage = S3Storage(settings.load())\n"
        # Not ru_maxrss, which has the peak of the process that started this one.
        "def most(): return int(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])\n"
        "async def run(name):\n"
        "    await storage.put('sized', Path(name))\n"
        "    await storage.get('sized', Path('copy'))\n"
        "asyncio.run(run('small')); before = most()\n"
        "asyncio.run(run('large')); print(most() - before)\n"
    )
    (tmp_path / "small").write_bytes(b"x")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(200 * MEBIBYTE)
    done = subprocess.run(
        [sys.executable, str(script)],
        env=s3_variables(s3_server.url, USER),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        check=True,
    )
    assert (tmp_path / "copy").stat().st_size == 200 * MEBIBYTE
    assert int(done.stdout) * 1024 < 100 * MEBIBYTE


@pytest.mark.parametrize(
    ("bucket", "account", "reason"),
    [
        ("s3://absent", USER, "NoSuchBucket"),
        ("s3://files", READER, "AccessDenied"),
        ("s3://files", (USER[0], "another-secret"), "SignatureDoesNotMatch"),
    ],
)
async def test_a_bucket_that_cannot_be_used_is_named(
    s3_server: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bucket: str,
    account: tuple[str, str],
    reason: str,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", account[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", account[1])
    storage = storage_on(s3_server.url, bucket)
    with pytest.raises(StorageUnavailable, match=f"{bucket}: {reason}") as raised:
        await storage.check()
    assert account[1] not in "".join(traceback.format_exception(raised.value))
    if bucket == "s3://absent":
        with pytest.raises(StorageUnavailable, match=reason):
            await storage.get("a", tmp_path / "copy")


class BadStore(BaseHTTPRequestHandler):
    """A store that is full, or returns another file than it was sent, which real ones do not on demand."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        full = "/full/" in self.path
        self._answer(
            507 if full else 200, b"<Error><Code>InsufficientStorage</Code></Error>" if full else b""
        )

    def do_GET(self) -> None:
        self._answer(200, b"another file")

    def do_DELETE(self) -> None:
        self._answer(204, b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        for name, value in {"ETag": '"1"', "Last-Modified": "Mon, 23 Nov 2026 12:00:00 GMT"}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not logged."""


@pytest.mark.parametrize(
    ("bucket", "reason"), [("s3://full", "InsufficientStorage|507"), ("s3://lying", "with another content")]
)
async def test_a_store_that_is_full_or_lies_is_named(tmp_path: Path, bucket: str, reason: str) -> None:
    """By the doctor, too, which goes on with the other parts."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BadStore) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            url = f"http://127.0.0.1:{server.server_port}"
            with pytest.raises(StorageUnavailable, match=reason):
                await storage_on(url, bucket).check()
            chosen = settings.load(data_dir=tmp_path, **s3_settings(url, bucket))
            found = {check.name: check for check in await examine(chosen, plugins.load())}
            assert (found["storage"].status, found["database"].status) == ("failed", "warning")
            assert re.search(reason, found["storage"].found)
        finally:
            server.shutdown()
            thread.join()


async def test_missing_credentials_are_named(
    s3_server: S3Server, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", f"http://127.0.0.1:{unused_tcp_port}")
    with pytest.raises(StorageUnavailable, match="no credentials; set AWS_ACCESS_KEY_ID"):
        await storage_on(s3_server.url).check()


async def test_a_usable_bucket_passes_and_stays_empty(s3_server: S3Server) -> None:
    await storage_on(s3_server.url, "s3://files/checked").check()
    assert s3_server.client().list_objects_v2(Bucket="files", Prefix="checked/")["KeyCount"] == 0


@pytest.mark.parametrize(
    ("variable", "endpoint"),
    [("AWS_ENDPOINT_URL", "localhost:9000"), ("PLATFORM_STORAGE_S3_ENDPOINT", "http://[::1")],
)
def test_a_server_names_an_endpoint_that_is_none(tmp_path: Path, variable: str, endpoint: str) -> None:
    variables = s3_variables("", USER) | {variable: endpoint}
    done = ServerProcess(tmp_path, env=variables).run("serve", "--port", "0")
    assert done.returncode == 1
    assert variable in done.stderr
    assert "Traceback" not in done.stderr


def test_botocore_has_the_context_that_ends_redirects(s3_server: S3Server) -> None:
    """A release without it would follow them to other regions."""
    storage, contexts = storage_on(s3_server.url), []
    with storage._connected() as client:
        client.meta.events.register("needs-retry.s3", lambda request_dict, **_: contexts.append(request_dict))
        client.list_buckets()
        client.head_bucket(Bucket="files")
    assert contexts[-1]["context"]["s3_redirect"]["redirected"] is True


async def test_an_error_of_a_caller_stays_what_it_is(s3_server: S3Server) -> None:
    """Only botocore's own KeyErrors are failures of the store."""
    with pytest.raises(KeyError, match="own"), storage_on(s3_server.url)._connected():
        raise KeyError("own")


def test_a_server_does_not_start_without_its_bucket(s3_server: S3Server, tmp_path: Path) -> None:
    server = ServerProcess(tmp_path, env=s3_variables(s3_server.url, USER, "s3://absent"))
    done = server.run("serve", "--port", "0")
    assert done.returncode == 1
    assert "s3://absent: NoSuchBucket" in done.stderr
    assert USER[1] not in done.stderr + done.stdout


async def test_simultaneous_transfers_are_whole(s3_server: S3Server, tmp_path: Path) -> None:
    storage = storage_on(s3_server.url, "s3://files/at-once")
    contents = [bytes([number]) * (number * 3 * MEBIBYTE) for number in range(6)]
    for number, content in enumerate(contents):
        (tmp_path / f"{number}").write_bytes(content)
    await asyncio.gather(*(storage.put(f"{number}", tmp_path / f"{number}") for number in range(6)))
    await asyncio.gather(*(storage.get(f"{number}", tmp_path / f"copy-{number}") for number in range(6)))
    assert [(tmp_path / f"copy-{number}").read_bytes() for number in range(6)] == contents
    with pytest.raises(MissingFile):
        await storage.get("absent", tmp_path / "absent")


def test_the_plugin_is_loaded_if_configured(tmp_path: Path) -> None:
    assert collidium_storages(settings.load(data_dir=tmp_path)) == []
    (storage,) = collidium_storages(settings.load(**s3_settings("https://s3.example", "s3://lab/files")))
    assert isinstance(storage, S3Storage)
    assert storage.url == "s3://lab/files"
    with pytest.raises(ConfigurationError, match="PLATFORM_STORAGE_S3_URL"):
        settings.load(storage="s3")
    with pytest.raises(ConfigurationError, match="PLATFORM_STORAGE_S3_ENDPOINT"):
        settings.load(**s3_settings("https://user:secret@s3.example"))


def test_a_missing_dependency_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(ConfigurationError, match=r"collidium\[s3\]"):
        storage_on("https://s3.example")
