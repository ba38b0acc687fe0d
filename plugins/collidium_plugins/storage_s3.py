"""Storage ``s3``: files in a bucket of an S3-compatible object store, which several machines can share.

Credentials are those of AWS's tools: ``AWS_*`` variables, their files, web identity tokens, container and
instance metadata. No redirect is followed: it would send file and session token to a host that the store
names. Incomplete uploads of killed processes stay in the bucket until a lifecycle rule
(``AbortIncompleteMultipartUpload``) removes them.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import responses
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from time import monotonic
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final, TypeVar

from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable, check_key, probe
from collidium.errors import ConfigurationError
from collidium.files.held import HeldFile
from collidium.hookspecs import hookimpl
from collidium.settings import MEBIBYTE

if TYPE_CHECKING:
    from boto3.session import Session

    from collidium.settings import Settings

Result = TypeVar("Result")

#: Size of the parts of an upload, of which S3 accepts 10,000, and number of parts in memory.
_PART_BYTES: Final = 8 * MEBIBYTE
_PARTS_AT_ONCE: Final = 4
_CALLS_AT_ONCE: Final = 32
#: Bytes read between looks at the time, and the time that one file may take.
_READ_BYTES: Final = 64 * 1024
_READ_SECONDS: Final = 3600
#: A busy store is asked again.
_ATTEMPTS: Final = 3
_NO_CREDENTIALS: Final = "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"


@hookimpl
def collidium_storages(settings: Settings) -> list[Storage]:
    """Return no storage if no bucket is configured."""
    if not settings.storage_s3_url:
        return []
    return [S3Storage(settings)]


class S3Storage(Storage):
    """An object per key. S3 shows objects only after complete uploads."""

    name = "s3"

    def __init__(self, settings: Settings) -> None:
        _check_packages(settings)
        self.url = settings.storage_s3_url
        self._settings = settings
        bucket, _, prefix = self.url.removeprefix("s3://").partition("/")
        self._bucket, self._prefix = bucket, prefix and f"{prefix}/"
        self._opening = Lock()
        self._client: Any = None
        # Not asyncio's default pool, which a hanging store would block.
        self._threads = ThreadPoolExecutor(_CALLS_AT_ONCE, "collidium-s3")

    async def put(self, key: str, path: Path) -> None:
        await self._call(self._put, check_key(key), path)

    async def get(self, key: str, path: Path) -> None:
        await self._call(self._get, check_key(key), path)

    async def exists(self, key: str) -> bool:
        return await self._call(self._exists, check_key(key))

    async def delete(self, key: str) -> None:
        await self._call(self._delete, check_key(key))

    async def check(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            await probe(self, Path(directory))

    async def close(self) -> None:
        """Cancel queued calls. Connections in use are closed at the end of their calls."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            self._client.close()

    async def _call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def _object(self, key: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": self._prefix + key}

    def _put(self, key: str, path: Path) -> None:
        from boto3.s3.transfer import TransferConfig

        parts = TransferConfig(
            multipart_threshold=_PART_BYTES,
            multipart_chunksize=_PART_BYTES,
            max_concurrency=_PARTS_AT_ONCE,
            preferred_transfer_client="classic",
        )
        parts.max_in_memory_upload_chunks = 1  # that wait; as many as are sent at once are in memory, too
        checksum = self._settings.storage_s3_checksum.upper()
        options = {"ChecksumAlgorithm": checksum} if checksum else {}
        with path.open("rb") as file, self._connected() as client:
            client.upload_fileobj(file, **self._object(key), ExtraArgs=options, Config=parts)

    def _get(self, key: str, path: Path) -> None:
        with self._connected() as client:
            found = client.get_object(**self._object(key))
        size = found.get("ContentLength", 0)
        end = monotonic() + _READ_SECONDS
        with closing(found["Body"]) as body:
            copy = HeldFile.create(path.parent)
            try:
                with self._connected():
                    for data in body.iter_chunks(_READ_BYTES):
                        copy.write(data, copy.size + len(data))
                        if copy.size > size or monotonic() > end:
                            break
                if copy.size != size:
                    raise StorageUnavailable(f"{self.url}: {key} ended after {copy.size} of {size} bytes")
                copy.path.replace(path)
            finally:
                copy.let_go()

    def _exists(self, key: str) -> bool:
        try:
            with self._connected() as client:
                client.head_object(**self._object(key))
        except MissingFile:
            return False
        return True

    def _delete(self, key: str) -> None:
        with self._connected() as client:
            client.delete_object(**self._object(key))

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """The client, whose errors become the storage's.

        Without their causes: the store's response may hold the rejected session token.
        """
        from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError
        from botocore.parsers import ResponseParserError
        from urllib3.exceptions import HTTPError

        try:
            with self._opening:
                # Metadata that did not answer is asked again by the next call.
                self._client = self._client or _open(self._settings)
            yield self._client
        except ClientError as error:
            reason = _reason(error.response)
            # Not those of the service of credentials.
            if error.operation_name in {"GetObject", "HeadObject"} and reason in {
                "NoSuchKey",
                "404 Not Found",
            }:
                raise MissingFile(f"{self.url}: {reason}") from None
            raise StorageUnavailable(f"{self.url}: {reason}") from None
        except NoCredentialsError:
            raise StorageUnavailable(f"{self.url}: {_NO_CREDENTIALS}") from None
        except (BotoCoreError, ResponseParserError, HTTPError, KeyError) as error:
            if isinstance(error, KeyError) and not _is_botocores(error):
                raise
            reason = f"the object store cannot be reached ({type(error).__name__})"
            raise StorageUnavailable(f"{self.url}: {reason}") from None


def _is_botocores(error: KeyError) -> bool:
    """Whether a response without an expected field raised it, in botocore or its transfers."""
    *_, (frame, _) = walk_tb(error.__traceback__)
    return frame.f_globals["__name__"].partition(".")[0] in {"botocore", "s3transfer"}


def _check_packages(settings: Settings) -> None:
    try:
        import boto3  # noqa: F401 -- whether it is installed
    except ModuleNotFoundError:
        raise ConfigurationError("PLATFORM_STORAGE_S3_URL needs boto3: pip install 'collidium[s3]'") from None
    if settings.storage_s3_checksum == "crc64nvme" and find_spec("awscrt") is None:
        raise ConfigurationError("PLATFORM_STORAGE_S3_CHECKSUM=crc64nvme needs awscrt: pip install awscrt")


def _open(settings: Settings) -> Any:
    """A client. It has the credentials that are there now."""
    from boto3.session import Session
    from botocore.exceptions import BotoCoreError, NoCredentialsError

    session = Session()
    if session.get_credentials() is None:
        raise NoCredentialsError
    try:
        client = _client(session, settings)
    except BotoCoreError:
        raise
    except ValueError as error:  # also of urllib, for a host that is none
        name = "PLATFORM_STORAGE_S3_ENDPOINT" if settings.storage_s3_endpoint else "AWS_ENDPOINT_URL"
        raise ConfigurationError(f"{name}: {error}; set it to http(s)://host[:port]") from None
    client.meta.events.register_first("needs-retry.s3", _before_repeating)
    return client


def _client(session: Session, settings: Settings) -> Any:
    from botocore.config import Config

    return session.client(
        "s3",
        endpoint_url=settings.storage_s3_endpoint or None,
        region_name=settings.storage_s3_region
        or os.environ.get("AWS_REGION")
        or session.region_name
        or "us-east-1",
        config=Config(
            s3={"addressing_style": "path" if settings.storage_s3_path_style else "virtual"},
            connect_timeout=5,
            read_timeout=settings.storage_s3_timeout_seconds,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            max_pool_connections=_CALLS_AT_ONCE * _PARTS_AT_ONCE,
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )


def _before_repeating(request_dict: dict[str, Any], caught_exception: Exception | None, **_: Any) -> None:
    """Repeat no call in the region that a response names, nor one that waited as long as it may."""
    from botocore.exceptions import ReadTimeoutError

    if redirect := request_dict["context"].get("s3_redirect"):
        redirect["redirected"] = True  # as if botocore had done so already
    if isinstance(caught_exception, ReadTimeoutError):
        raise caught_exception


def _reason(response: Any) -> str:
    """The store's error code, or the status where it sent none."""
    status = response["ResponseMetadata"]["HTTPStatusCode"]
    code = str(response["Error"].get("Code", ""))
    reason = (
        code if re.fullmatch(r"[A-Za-z]\w{,63}", code) else f"{status} {responses.get(status, '')}".strip()
    )
    return f"{reason}; redirects are not followed" if 300 <= status < 400 else reason
