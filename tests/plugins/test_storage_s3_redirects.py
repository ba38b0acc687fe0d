"""Storage `s3` and what stores, metadata and STS may answer: no other address gets a request, or a secret."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import groupby
from pathlib import Path
from threading import Thread

import pytest
from tests.s3 import USER, s3_settings, s3_variables

from collidium import settings
from collidium.contracts.storage import StorageUnavailable
from collidium_plugins.storage_s3 import S3Storage

MEBIBYTE = 1024**2
TOKEN = "the-session-token"
LATER = "2035-01-01T00:00:00Z"


@dataclass
class Recorder:
    """What a server was asked, and what it answers: a redirect to `location`, if there is one."""

    status: int = 200
    location: str = ""
    body: bytes = b""
    requests: list[str] = field(default_factory=list)
    url: str = ""


class Recording(BaseHTTPRequestHandler):
    """A server that notes each request."""

    protocol_version = "HTTP/1.1"
    recorder: Recorder

    def _answer(self) -> None:
        recorder = self.recorder
        length = int(self.headers.get("Content-Length", 0))
        sent = self.rfile.read(length).decode(errors="replace") if length < MEBIBYTE else ""
        if length >= MEBIBYTE:
            self.rfile.read(length)
        recorder.requests.append(f"{self.command} {self.path}\n{self.headers}{sent}")
        self.send_response(recorder.status)
        if recorder.location:
            self.send_header("Location", recorder.location.removesuffix("/") + self.path)
            self.send_header("x-amz-bucket-region", "eu-west-1")
        self.send_header("Connection", "close")  # botocore never closes its clients of STS and metadata
        self.send_header("Content-Length", str(len(recorder.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(recorder.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 -- the library's names

    def log_message(self, *_: object) -> None:
        """Not logged."""


@contextmanager
def serving(recorder: Recorder) -> Iterator[Recorder]:
    with ThreadingHTTPServer(("127.0.0.1", 0), type("To", (Recording,), {"recorder": recorder})) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        recorder.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield recorder
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def other() -> Iterator[Recorder]:
    """The address that redirects name."""
    with serving(Recorder()) as other:
        yield other


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Temporary ones, and no files of AWS's tools."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, os.devnull)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", USER[0])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", USER[1])
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)


@pytest.fixture
def without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name)
    # No metadata but those of the test.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A file that is sent at once, and one that is sent in parts."""
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"PAR1")
    with large.open("wb") as file:
        file.truncate(20 * MEBIBYTE)
    return small, large


async def failures(url: str, files: tuple[Path, Path], count: int = 6) -> list[str]:
    """The storage's messages for one call of each kind, none of which may succeed."""
    storage = S3Storage(settings.load(**s3_settings(url)))
    small, large = files
    copy = small.with_name("copy")
    found = []
    calls = (
        lambda: storage.get("a", copy),
        lambda: storage.exists("a"),
        lambda: storage.delete("a"),
        lambda: storage.put("a", small),
        lambda: storage.put("a", large),
        storage.check,
    )
    for call in calls[:count]:
        with pytest.raises(StorageUnavailable) as raised:
            await call()
        text = "".join(traceback.format_exception(raised.value))
        assert TOKEN not in text
        assert USER[1] not in text
        found.append(str(raised.value))
    await storage.close()
    assert not copy.exists()
    return found


# urllib3 stumbles over botocore's headers after a 303, and leaves the connection to the garbage collector.
LEFT = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.mark.parametrize("status", [301, 302, pytest.param(303, marks=LEFT), 307, 308])
@pytest.mark.parametrize("to", ["host", "port", "path"])
async def test_no_redirect_is_followed(
    other: Recorder, files: tuple[Path, Path], status: int, to: str
) -> None:
    """It would take the session token, and the file, to an address that the store chooses."""
    with serving(Recorder(status)) as store:
        store.location = {
            "host": other.url.replace("127.0.0.1", "localhost"),
            "port": other.url,
            "path": f"{store.url}/elsewhere",
        }[to]
        for message in await failures(store.url, files):
            assert status == 303 or re.search(f": {status} .*; redirects are not followed$", message)
        methods = [line.split()[0] for line in store.requests]
        assert [name for name, _ in groupby(methods)] == ["GET", "HEAD", "DELETE", "PUT", "POST", "PUT"]
        assert status == 303 or len(methods) == 6
    gc.collect()
    assert not any("/elsewhere" in line for line in store.requests)
    assert other.requests == []


@pytest.mark.parametrize("status", [301, 400, 500])
@pytest.mark.parametrize("code", ["PermanentRedirect", "AuthorizationHeaderMalformed"])
async def test_a_call_stays_in_its_region(
    other: Recorder, files: tuple[Path, Path], status: int, code: str
) -> None:
    """The store's answer names a region and an endpoint, as AWS's do; the client would ask there."""
    named = f"<Region>eu-west-1</Region><Endpoint>{other.url.removeprefix('http://')}</Endpoint>"
    body = f"<Error><Code>{code}</Code>{named}</Error>".encode()
    with serving(Recorder(status, other.url, body)) as store:
        messages = await failures(store.url, files, 1)
        assert code in messages[0]
        assert all("us-east-1" in line and "GET" in line for line in store.requests)
        assert len(store.requests) == (3 if status == 500 else 1)
    assert other.requests == []


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.usefixtures("without_credentials")
async def test_a_web_identity_goes_to_sts_alone(
    other: Recorder, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    (tmp_path / "identity").write_text(TOKEN)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "identity"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/files")
    with serving(Recorder(status, other.url)) as sts, serving(Recorder()) as store:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        await failures(store.url, files, 1)
        assert TOKEN in sts.requests[0]
        assert store.requests == other.requests == []


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.usefixtures("without_credentials")
async def test_a_container_asks_its_metadata_alone(
    other: Recorder, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    with serving(Recorder(status, other.url)) as metadata, serving(Recorder()) as store:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{metadata.url}/credentials")
        monkeypatch.setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", TOKEN)
        await failures(store.url, files, 1)
        assert TOKEN in metadata.requests[0]
        assert store.requests == other.requests == []


@pytest.mark.parametrize("status", [302, 307])
@pytest.mark.usefixtures("without_credentials")
async def test_an_instance_asks_its_metadata_alone(
    other: Recorder, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    with serving(Recorder(status, other.url)) as metadata, serving(Recorder()) as store:
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "false")
        monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url)
        (message,) = await failures(store.url, files, 1)
        assert "there are no credentials" in message
        assert metadata.requests
        assert store.requests == other.requests == []


@pytest.mark.usefixtures("without_credentials")
async def test_credentials_of_a_container_are_used(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once its metadata gives some: a call before fails, and nothing has to start again."""
    keys = f'"AccessKeyId": "AKIA", "SecretAccessKey": "s", "Token": "{TOKEN}", "Expiration": "{LATER}"'
    with serving(Recorder(500)) as metadata, serving(Recorder()) as store:
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", metadata.url)
        storage = S3Storage(settings.load(**s3_settings(store.url)))
        with pytest.raises(StorageUnavailable):
            await storage.put("a", files[0])
        metadata.status, metadata.body = 200, b"{%s}" % keys.encode()
        await storage.put("a", files[0])
        await storage.close()
        assert f"X-Amz-Security-Token: {TOKEN}".lower() in store.requests[0].lower()


def test_nothing_secret_is_logged(files: tuple[Path, Path]) -> None:
    """At the level that logs most."""
    script = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from collidium import settings\n"
        "from collidium.runtime import logs\n"
        "from collidium_plugins.storage_s3 import S3Storage\n"
        "logs.configure('debug', 'text')\n"
        "asyncio.run(S3Storage(settings.load()).put('a', Path(sys.argv[1])))\n"
    )
    with serving(Recorder()) as store:
        done = subprocess.run(
            [sys.executable, "-c", script, str(files[0])],
            env={**os.environ, **s3_variables(store.url, USER), "AWS_SESSION_TOKEN": TOKEN},
            capture_output=True,
            text=True,
            check=True,
        )
        assert TOKEN in store.requests[0]
    assert TOKEN not in done.stderr + done.stdout
    assert USER[1] not in done.stderr + done.stdout


@pytest.mark.parametrize("status", [404, 520])
@pytest.mark.usefixtures("without_credentials")
async def test_an_sts_that_fails_is_no_missing_file(
    files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    (tmp_path / "identity").write_text(TOKEN)
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "identity"))
    monkeypatch.setenv("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/files")
    with serving(Recorder(status)) as sts:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", sts.url)
        await failures(sts.url, files, 1)


@pytest.mark.parametrize(
    "body", [b"", b"<", b"<html/>", b"not xml", b"<Error><Code>%s</Code></Error>" % TOKEN.encode()]
)
@pytest.mark.parametrize("status", [200, 404, 999])
async def test_answers_that_are_no_answers_fail(files: tuple[Path, Path], status: int, body: bytes) -> None:
    """To a file in parts, whose protocol is the largest."""
    with serving(Recorder(status, body=body)) as store:
        storage = S3Storage(settings.load(**s3_settings(store.url)))
        with pytest.raises(StorageUnavailable) as raised:
            await storage.put("a", files[1])
        await storage.close()
        assert TOKEN not in str(raised.value)
