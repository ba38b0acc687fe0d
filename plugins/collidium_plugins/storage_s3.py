"""Storage ``s3``: files in a bucket of an S3-compatible object store, which several machines can share.

Credentials are those of AWS's tools: ``AWS_*`` variables, web identity tokens, container and instance
metadata. Incomplete uploads of killed processes stay in the bucket until a lifecycle rule
(``AbortIncompleteMultipartUpload``) removes them.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from collidium.contracts.storage import MissingFile, Storage, StorageUnavailable, check_key, probe
from collidium.errors import ConfigurationError
from collidium.files.held import HeldFile
from collidium.hookspecs import hookimpl
from collidium.settings import MEBIBYTE

if TYPE_CHECKING:
    from obstore.store import S3Store

    from collidium.settings import Settings

Result = TypeVar("Result")

#: Size of the parts of an upload, of which S3 accepts 10,000, and number of parts in memory.
_PART_BYTES: Final = 8 * MEBIBYTE
_PARTS_AT_ONCE: Final = 4
_CALLS_AT_ONCE: Final = 32
_REASONS: Final = (r"<Code>(\w+)</Code>", r"status code: (\d+ [A-Z][\w ]*)")


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
        self.url = settings.storage_s3_url
        self._store = _open(settings)
        self._threads = ThreadPoolExecutor(_CALLS_AT_ONCE, "collidium-s3")

    # In threads: with obstore's asyncio calls, the interpreter sometimes (2 of 25) crashes at exit. Not in
    # asyncio's default pool, which a hanging store would block.

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
        """Cancel queued calls. Connections are closed with the process."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _call(self, function: Callable[..., Result], *arguments: Any) -> Result:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def _put(self, key: str, path: Path) -> None:
        import obstore

        with path.open("rb") as file, self._store_errors():
            obstore.put(self._store, key, file, chunk_size=_PART_BYTES, max_concurrency=_PARTS_AT_ONCE)

    def _get(self, key: str, path: Path) -> None:
        import obstore

        with self._store_errors():
            found = obstore.get(self._store, key)
        copy = HeldFile.create(path.parent)
        try:
            with self._store_errors():
                for data in found.stream(_PART_BYTES):
                    copy.write(data, found.meta["size"])
            if copy.size != found.meta["size"]:
                raise StorageUnavailable(f"{self.url}: {key} ended after {copy.size} bytes")
            copy.path.replace(path)
        finally:
            copy.let_go()

    def _exists(self, key: str) -> bool:
        import obstore

        try:
            with self._store_errors():
                obstore.head(self._store, key)
        except MissingFile:
            return False
        return True

    def _delete(self, key: str) -> None:
        import obstore

        with self._store_errors():
            obstore.delete(self._store, key)

    @contextmanager
    def _store_errors(self) -> Iterator[None]:
        from obstore.exceptions import BaseError

        try:
            yield
        except (BaseError, FileNotFoundError) as error:
            # Without its cause: the store's response may hold the rejected session token.
            reason = _reason(str(error))
            if isinstance(error, FileNotFoundError) and reason != "NoSuchBucket":
                raise MissingFile(f"{self.url}: {reason}") from None
            raise StorageUnavailable(f"{self.url}: {reason}") from None


def _open(settings: Settings) -> S3Store:
    try:
        from obstore.store import S3Store
    except ModuleNotFoundError:
        raise ConfigurationError(
            "PLATFORM_STORAGE_S3_URL needs obstore: pip install 'collidium[s3]'"
        ) from None

    bucket, _, prefix = settings.storage_s3_url.removeprefix("s3://").partition("/")
    endpoint = settings.storage_s3_endpoint
    timeout = timedelta(seconds=settings.storage_s3_timeout_seconds)
    chosen = {
        "endpoint": endpoint,
        "region": settings.storage_s3_region,
        "checksum_algorithm": settings.storage_s3_checksum,
    }
    return S3Store(
        bucket,
        prefix=prefix or None,
        config={name: value for name, value in chosen.items() if value},  # type: ignore[arg-type]  # by name
        virtual_hosted_style_request=not settings.storage_s3_path_style,
        disable_bulk_delete=True,  # not supported by every server
        client_options={
            "allow_http": endpoint.startswith("http://"),
            "connect_timeout": timedelta(seconds=5),
            "read_timeout": timeout,
            "timeout": timedelta(hours=1),
        },
        # A request that timed out is not retried.
        retry_config={"max_retries": 3, "retry_timeout": timeout / 2},
    )


def _reason(text: str) -> str:
    """The store's error code, else the status or a message about the connection."""
    if re.search("/latest/(api/token|meta-data)", text):  # instance metadata, the last source of credentials
        return "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    found = (re.search(pattern, text) for pattern in _REASONS)
    return next((match[1].strip() for match in found if match), "the object store cannot be reached")
