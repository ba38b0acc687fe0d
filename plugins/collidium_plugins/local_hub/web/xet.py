"""Uploads by Xet: tokens, xorbs and shards. Downloads, and chunks that are known already, are not offered."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from pathlib import Path
from typing import Final

from quart import Response, request

from collidium.api.bodies import ReceivedFile, receive_to_file
from collidium.errors import CollidiumError
from collidium.files.held import HeldFile
from collidium_plugins.local_hub.failures import (
    HubFailure,
    as_hub_error,
    invalid,
    not_signed_in,
    repo_not_found,
)
from collidium_plugins.local_hub.names import SHA256
from collidium_plugins.local_hub.repositories import (
    Repo,
    RepositoryTarget,
    check_quota,
    owns_object,
    repo_of_row,
    select,
    writable,
)
from collidium_plugins.local_hub.store import sign, verify
from collidium_plugins.local_hub.web.context import (
    XET_PATH,
    base_url,
    hub,
    in_thread,
    in_turn,
    json_response,
    reading,
)
from collidium_plugins.local_hub.web.uploads import FILE_BYTES, LargeFileUpload, reference_upload
from collidium_plugins.local_hub.xet import SHARD_BYTES, XORB_BYTES, LostChunks, SentFile, read_shard, unpack

logger = logging.getLogger(__name__)

#: Clients ask for another token in time.
TOKEN_SECONDS: Final = 3600


async def end_idle_hourly(hour: float = 3600) -> None:
    """Delete the xorbs of uploads that have expired."""
    while True:
        await asyncio.sleep(hour)
        try:
            await in_thread(hub().unpackers, hub().store.sessions.end_idle)
        except Exception:  # tried again in the next hour
            logger.exception("Uploads by Xet that have expired are not deleted")


async def write_token(target: RepositoryTarget) -> Response:
    """``GET …/xet-write-token/{revision}``: where to upload, and a token for it"""
    repo = await reading(lambda db: writable(db, target))
    session = await in_thread(hub().readers, hub().store.sessions.open, repo.owner_id, repo.id)
    address, expires = f"{base_url()}{XET_PATH}{session}", int(time.time()) + TOKEN_SECONDS
    token = sign(hub().store.xet_key, {"repo_id": repo.id}, TOKEN_SECONDS)
    response = json_response({"casUrl": address, "exp": expires, "accessToken": token})
    response.headers["X-Xet-Cas-Url"] = address
    response.headers["X-Xet-Token-Expiration"] = str(expires)
    response.headers["X-Xet-Access-Token"] = token
    return response


async def put_xorb(session: str, xorb: str) -> Response:
    """``POST …/v1/xorbs/default/{hash}``: chunks of files"""
    repo, directory = await _permitted(session)
    if not SHA256.fullmatch(xorb):
        raise invalid("The hash of a xorb must be 64 hexadecimal digits")
    uploads, path = hub().store.blobs.uploads, directory / xorb
    async with receive_to_file(request, uploads, XORB_BYTES, part=None, media_types=None) as received:
        await in_turn(hub().unpacking, repo.owner_id, hub().unpackers, _unpack, received, path)
    return json_response({"was_inserted": True})


def _unpack(received: ReceivedFile, destination: Path) -> None:
    file = HeldFile.create(hub().store.blobs.uploads)
    try:
        with received.path.open("rb") as xorb:
            unpack(xorb, file)
        hub().store.sessions.add(file, destination, hub().store.quota)
    finally:
        file.let_go()


async def put_shard(session: str, version: int = 1) -> Response:
    """``POST …[/v{1,2}]/shards``: of which chunks files consist. They are stored as by LFS.

    The second version sends errors in a successful response, and clients show their text.
    """
    repo, directory = await _permitted(session)
    uploads = hub().store.blobs.uploads
    async with receive_to_file(request, uploads, SHARD_BYTES, part=None, media_types=None) as received:
        try:
            await in_turn(
                hub().assembling, repo.owner_id, hub().assemblers, _store_files, repo, directory, received
            )
        except (HubFailure, CollidiumError) as error:
            failed = as_hub_error(error)
            if version == 1 or failed.status >= 500:
                raise
            return json_response({"type": "error", "message": failed.message, "retryable": False})
    return json_response({"result": 1} if version == 1 else {"type": "result"})


def _store_files(repo: Repo, session: Path, received: ReceivedFile) -> None:
    store = hub().store
    with received.path.open("rb") as shard:
        with store.database.reading() as db:
            files: dict[str, int] = {}
            for file in read_shard(shard):
                if files.setdefault(file.sha256, size := file.size) != size:
                    raise invalid("The shard has a file with two sizes")
            missing = {sha256 for sha256 in files if owns_object(db, repo, sha256) is None}
            check_quota(db, repo.id, store.quota, sum(files[sha256] for sha256 in missing))
        shard.seek(0)
        try:
            for file in read_shard(shard):
                if file.sha256 in missing:
                    missing.remove(file.sha256)
                    _store_file(repo, session, file)
        except LostChunks:
            store.sessions.end(session)
            raise


def _store_file(repo: Repo, session: Path, file: SentFile) -> None:
    if file.size > FILE_BYTES:
        raise invalid(f"A file can have at most {FILE_BYTES:,} bytes")
    store = hub().store
    with store.database.reading() as db:
        check_quota(db, repo.id, store.quota, file.size)
    content = HeldFile.create(store.blobs.uploads)
    try:
        file.assemble(session, content)
        content.move_to(store.blobs.path(file.sha256))
    finally:
        content.let_go()
    with store.database.writing() as db:
        reference_upload(db, LargeFileUpload(repo.id, file.sha256, content.size))


async def _permitted(session: str) -> tuple[Repo, Path]:
    """Return the repository of the request's token, and the directory of the session."""
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    claims = verify(hub().store.xet_key, token.strip())
    if scheme.lower() != "bearer" or claims is None:
        raise not_signed_in()

    def find(db: sqlite3.Connection) -> tuple[Repo, Path]:
        row = db.execute(select("WHERE r.id = ?"), (claims["repo_id"],)).fetchone()
        if row is None:
            raise repo_not_found(anonymous=False)
        repo = repo_of_row(row)
        return repo, hub().store.sessions.find(repo.owner_id, repo.id, session)

    return await reading(find)
