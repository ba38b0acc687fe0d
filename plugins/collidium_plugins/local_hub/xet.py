"""Contents that are uploaded by Xet (https://huggingface.co/docs/xet): xorbs and shards.

A xorb holds chunks of files, and a shard lists the chunks of each file. Xorbs are kept unpacked for a while,
in a session of their repository. Clients remember for weeks, by the address of a session, which chunks they
sent to it, and do not send those again; so no address is returned again once its xorbs may be deleted.

Unpacked, files are put together by copying ranges, and a compressed bomb costs one request. Xorbs belong to
an account and a repository, by the token, so that no shard names those of others.
"""

from __future__ import annotations

import itertools
import logging
import os
import re
import secrets
import shutil
import struct
import time
from array import array
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import BinaryIO, Final

from collidium.files.held import HeldFile
from collidium_plugins.local_hub.failures import HubFailure, invalid

#: Maximum size of a xorb as it is sent, and of its chunks together; the format's own limits.
XORB_BYTES: Final = 65 * 1024**2
UNPACKED_BYTES: Final = 64 * 1024**2
CHUNKS: Final = 8192
CHUNK_BYTES: Final = 128 * 1024
#: Maximum size of a shard; clients split longer ones at 64 MiB.
SHARD_BYTES: Final = 65 * 1024**2
#: Maximum number of files of a shard; as many as a commit can name.
FILES: Final = 50_000
#: Maximum number of xorbs of an account, all of which are counted for each one.
XORBS: Final = 5_000
#: For how long uploads join a session. It stays for twice as long after the last of its xorbs.
SESSION_SECONDS: Final = 6 * 3600

logger = logging.getLogger(__name__)

_FOOTER: Final = b"XETBLOB"
_SHARD_TAG: Final = b"HFRepoMetaData\0UigEj{\x81W\x83\xa5\xbd\xd9\\\xcd\xd1J\xa9"
_SHARD_VERSION: Final = 2
#: A file of a shard, and one of its segments: a hash and four numbers.
_FILE: Final = struct.Struct("<32sII8x")
_SEGMENT: Final = struct.Struct("<32sIIII")
_END: Final = b"\xff" * 32
_HAS_HASHES: Final = 1 << 31
_HAS_SHA256: Final = 1 << 30
_PIECE: Final = 1024**2


class LostChunks(HubFailure):
    """Xorbs of a session are missing or differ from what the client believes it sent."""

    def __init__(self) -> None:
        super().__init__(409, "Chunks of this upload are missing or broken: start it again")


# -- sessions ----------------------------------------------------------------------------------------------


class XetSessions:
    """The xorbs of unfinished uploads, at ``directory/ACCOUNT/REPOSITORY-TIME-RANDOM/HASH``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def open(self, account_id: int, repo_id: int, now: float | None = None) -> str:
        """Return the session that uploads to the repository join now, in seconds since 1970."""
        now = time.time() if now is None else now
        for path in self._paths(f"{account_id}/{repo_id}-*"):
            with suppress(FileNotFoundError):  # of a session that ends
                if now < int(path.name.split("-")[1]) + SESSION_SECONDS:
                    os.utime(path, (now, now))
                    return path.name
        path = self._of(account_id) / f"{repo_id}-{int(now)}-{secrets.token_hex(8)}"
        path.mkdir(mode=0o700, parents=True)
        return path.name

    def find(self, account_id: int, repo_id: int, name: str) -> Path:
        """Return the directory of a session; raises HubError 404."""
        path = self._of(account_id) / name
        if not (re.fullmatch(rf"{repo_id}-[0-9]+-[0-9a-f]+", name) and path.is_dir()):
            raise HubFailure(404, "This upload has expired: start it again")
        return path

    def add(self, file: HeldFile, xorb: Path, limit: int) -> None:
        """Move an unpacked xorb to its session.

        A process calls it for one account at a time; several processes may exceed the limit by a xorb each.
        Raises HubError 403 if the account's xorbs exceed ``limit`` bytes or are too many, and LostChunks.
        """
        sizes = [file.size]
        for path in self._paths(f"{xorb.parent.parent.name}/*/*"):
            with suppress(FileNotFoundError):  # of a session that ends
                if path != xorb:  # which it replaces
                    sizes.append(path.stat().st_size)
        if len(sizes) > XORBS or sum(sizes) > limit:
            raise HubFailure(
                403,
                f"Recent uploads by Xet would take {sum(sizes):,} bytes in {len(sizes):,} parts: "
                f"wait {2 * SESSION_SECONDS // 3600} hours, or set HF_HUB_DISABLE_XET=1",
            )
        try:
            file.move_to(xorb, make_parents=False)
        except FileNotFoundError:
            raise LostChunks from None

    def end(self, path: Path) -> None:
        """Delete a session, so that the next upload starts anew."""
        # Moved away first, so that an upload that is not finished yet cannot add to it.
        ended = self._directory / "ended" / secrets.token_hex(8)
        ended.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # ended by another process
            path.rename(ended)
            shutil.rmtree(ended)

    def end_idle(self, now: float | None = None) -> None:
        """Delete the sessions without a recent upload, and those that a killed process began to delete."""
        before = (time.time() if now is None else now) - 2 * SESSION_SECONDS
        for path in self._paths("*/*"):
            try:
                if path.stat().st_mtime < before:
                    self.end(path)
            except FileNotFoundError:
                continue  # ended by another process
            except OSError:
                logger.exception("An upload by Xet that has expired is not deleted")

    def erase(self, account_id: int) -> None:
        """Delete the sessions of an account."""
        self.end(self._of(account_id))

    def _of(self, account_id: int) -> Path:
        return self._directory / str(account_id)

    def _paths(self, pattern: str) -> Iterator[Path]:
        """Yield what matches. What vanishes meanwhile is left out, where pathlib raises an error."""
        found = glob(pattern, root_dir=self._directory)  # noqa: PTH207 -- relative names
        return (self._directory / path for path in found)


# -- xorbs -------------------------------------------------------------------------------------------------


def unpack(xorb: BinaryIO, to: HeldFile) -> None:
    """Write the chunks of a xorb without headers and compression, then where each starts, and their number.

    Raises HubError 400 for an invalid xorb, and TooLarge.
    """
    starts = array("I", [0])
    while (header := xorb.read(8)) and not header.startswith(_FOOTER):
        packed, size = int.from_bytes(header[1:4], "little"), int.from_bytes(header[5:8], "little")
        if len(header) < 8 or header[0] or max(packed, size) > CHUNK_BYTES or len(starts) > CHUNKS:
            raise invalid("The xorb has an invalid header of a chunk")
        to.write(_chunk(header[4], xorb.read(packed), size), UNPACKED_BYTES)
        starts.append(to.size)
    starts.append(len(starts))
    to.write(starts.tobytes(), XORB_BYTES)


def _chunk(scheme: int, packed: bytes, size: int) -> bytes:
    """Return the content of a chunk, whose announced size bounds the memory."""
    content = packed
    if scheme in {1, 2}:
        import pyarrow as pa

        try:
            with pa.input_stream(pa.py_buffer(packed), compression="lz4") as stream:
                content = stream.read(size + 1)
        except OSError:
            raise invalid("A chunk of the xorb is not LZ4") from None
    elif scheme:
        raise invalid(f"A chunk of the xorb has an unknown compression: {scheme}")
    if len(content) != size:
        raise invalid("A chunk of the xorb differs in size from its header")
    return _regroup(content) if scheme == 2 else content


def _regroup(grouped: bytes) -> bytes:
    """Undo byte grouping: all first bytes of groups of four, then all second ones, and so on."""
    content, start = bytearray(len(grouped)), 0
    for lane in range(4):
        end = start + len(content[lane::4])
        content[lane::4] = grouped[start:end]
        start = end
    return bytes(content)


# -- shards ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file of a shard, with the segments of which it consists."""

    sha256: str
    _segments: bytes

    @property
    def size(self) -> int:
        return sum(size for _, _, size, _, _ in _SEGMENT.iter_unpack(self._segments))

    def assemble(self, session: Path, to: HeldFile) -> None:
        """Write the content; raises LostChunks."""
        size = self.size
        for xorb, _, length, first, stop in _SEGMENT.iter_unpack(self._segments):
            with _opened(session / _hexadecimal(xorb)) as file:
                for piece in _pieces(file, first, stop, length):
                    to.write(piece, size)
        if (to.size, to.sha256) != (size, self.sha256):
            raise LostChunks


def read_shard(shard: BinaryIO) -> Iterator[SentFile]:
    """Yield the files of a shard; raises HubError 400."""
    if shard.read(48)[:40] != _SHARD_TAG + _SHARD_VERSION.to_bytes(8, "little"):
        raise invalid("The shard has an unknown format")
    for number in itertools.count():
        hash_, flags, count = _FILE.unpack(_read(shard, _FILE.size))
        if hash_ == _END:
            return
        if number == FILES:
            raise invalid(f"A shard can have at most {FILES:,} files: upload fewer at once")
        if not flags & _HAS_SHA256:
            raise invalid("A file of the shard has no SHA-256")
        segments = _read(shard, count * _SEGMENT.size)
        if flags & _HAS_HASHES:
            shard.seek(len(segments), os.SEEK_CUR)
        yield SentFile(_hexadecimal(_read(shard, _SEGMENT.size)[:32]), segments)


def _read(shard: BinaryIO, length: int) -> bytes:
    """Return the next bytes; allocates no more than there are."""
    if length > os.fstat(shard.fileno()).st_size - shard.tell():
        raise invalid("The shard is truncated")
    return shard.read(length)


def _opened(xorb: Path) -> BinaryIO:
    try:
        return xorb.open("rb")
    except FileNotFoundError:
        raise LostChunks from None


def _pieces(xorb: BinaryIO, first: int, stop: int, length: int) -> Iterator[bytes]:
    """Yield the content of some chunks of an unpacked xorb, ``length`` bytes in all."""
    end = xorb.seek(-4, os.SEEK_END)
    (count,) = array("I", xorb.read(4))
    if not first < stop < count:
        raise LostChunks
    places: list[int] = []
    for number in (first, stop):
        xorb.seek(end - 4 * (count - number))
        places += array("I", xorb.read(4))
    if places[1] - places[0] != length:
        raise LostChunks
    xorb.seek(places[0])
    while length:
        piece = xorb.read(min(length, _PIECE))
        length -= len(piece)
        yield piece


def _hexadecimal(hash_: bytes) -> str:
    """Return how Xet writes a hash: four numbers of 64 bits, stored in the order of little endian."""
    return "".join(hash_[start : start + 8][::-1].hex() for start in range(0, 32, 8))
