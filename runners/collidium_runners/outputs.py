"""Collect the output of a job: the tables in the folders of its parts become shards.

A part's manifest (:data:`MANIFEST`) has the SHA-256 of each of its tables, computed where they were written.

The output is untrusted: links to files or folders are not followed, and sparse files are rejected. Hard links
are not: runners make them, and they need the right to read the file.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

from collidium.contracts.runner import RunnerRefused, RunnerUnavailable
from collidium.files import untrusted
from collidium.files.durable import bytes_taken, is_sparse, sha256_of

#: Maximum number of files of a part.
MAX_FILES: Final = 10_000
#: The manifest in the folder of a part, in the format of sha256sum; only batch scripts write it.
MANIFEST: Final = "SHA256SUMS"
#: Maximum size of a manifest, more than MAX_FILES lines.
LONGEST_MANIFEST: Final = 4 * 1024**2

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_COPY_BYTES: Final = 1024**2
_FILE: Final = re.compile(r"(?P<table>[A-Za-z0-9_][A-Za-z0-9_.-]*?)(-\d{5}-of-\d{5})?\.parquet", re.ASCII)
_LISTED: Final = re.compile(r"([0-9a-f]{64}) [ *](?:\./)?([^/\n]+)\n", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of one part, and its name as a shard of its table in the whole output."""

    part: int
    file: str
    name: str
    #: From the part's manifest; None without one.
    sha256: str | None = None

    def check(self, path: Path) -> None:
        """Raise RunnerUnavailable if a copy differs from what the part wrote. Blocks."""
        if self.sha256 is not None and self.sha256 != sha256_of(path):
            raise RunnerUnavailable(f"{self.file} of part {self.part} differs from what the part wrote")


def parse_manifest(text: str) -> dict[str, str]:
    """Return the SHA-256 of each file in a part's manifest."""
    return {name: sha256 for sha256, name in _LISTED.findall(text)}


def shards(listings: Mapping[int, Collection[str] | None]) -> list[Shard]:
    """Name the files of parts; ``listings`` are the file names in each part's folder, None if it is missing.

    A table is ``<table>.parquet`` in a part, or several shards. In the whole output it is ``<table>.parquet``
    if it is a single file, else shards in the order of the parts. Other files are ignored. Raises
    :class:`~collidium.contracts.runner.RunnerRefused` if a part is missing, has no tables, or has other
    tables than the first part.
    """
    tables: dict[str, list[tuple[int, str]]] = {}
    first = min(listings)
    for part, listing in listings.items():
        if listing is None:
            raise RunnerRefused(f"the output of part {part} is missing")
        of_part = _tables(listing)
        if not of_part or (part > first and of_part.keys() != tables.keys()):
            raise RunnerRefused(
                f"part {part} wrote the tables {_listed(of_part)}, part {first} {_listed(tables)}"
            )
        for table, names in of_part.items():
            tables.setdefault(table, []).extend((part, name) for name in names)
    return [
        Shard(part, file, _shard_name(table, number, len(found)))
        for table, found in sorted(tables.items())
        for number, (part, file) in enumerate(found)
    ]


def with_checksums(shards: Sequence[Shard], manifests: Mapping[int, Mapping[str, str]]) -> list[Shard]:
    """Return the shards with the checksums of the parts' manifests, which are empty for parts without one.

    Raises :class:`~collidium.contracts.runner.RunnerRefused` if a part has other tables than its manifest.
    """
    files: dict[int, set[str]] = {}
    for shard in shards:
        files.setdefault(shard.part, set()).add(shard.file)
    for part, manifest in manifests.items():
        if manifest and files[part] != {name for name in manifest if _FILE.fullmatch(name)}:
            raise RunnerRefused(f"part {part} has other files than its manifest")
    return [replace(shard, sha256=manifests[shard.part].get(shard.file)) for shard in shards]


def gather(source: Path, parts: range, directory: Path, max_bytes: int) -> list[Path]:
    """Write the output of parts, the folders ``source/<part>``, below ``directory``; return its files.

    Files are linked if possible, else copied. Blocks on the disk. Raises the errors of :func:`shards`,
    :func:`require_room`, :func:`with_checksums` and :meth:`Shard.check`, and RunnerRefused for too many files
    and for a sparse file.
    """
    listings = {part: _listing(source, part) for part in parts}
    named = shards(listings)
    require_room((_bytes(source, shard) for shard in named), max_bytes)
    manifests = {part: _manifest(source, part, listing or ()) for part, listing in listings.items()}
    named = with_checksums(named, manifests)
    directory.mkdir(parents=True, exist_ok=True)
    left = max_bytes
    for shard in named:
        with _opened(source, shard.part) as folder:
            left -= _place(folder, shard.file, directory / shard.name, left)
        shard.check(directory / shard.name)
    return [directory / shard.name for shard in named]


def require_room(sizes: Iterable[int], max_bytes: int) -> None:
    """Raise RunnerRefused if the files have more than ``max_bytes`` together."""
    if (size := sum(sizes)) > max_bytes:
        raise RunnerRefused(f"the output has {size} bytes; {max_bytes} are allowed for what was ordered")


def has_tables(source: Path, part: int) -> bool:
    """Whether there is a parquet file in the folder of a part. Blocks on the disk."""
    try:
        return any(name.endswith(".parquet") for name in _files(source, part))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except RunnerRefused:  # too many names: collecting them shows it
        return True


def _tables(listing: Collection[str]) -> dict[str, list[str]]:
    tables: dict[str, list[str]] = {}
    for name in sorted(listing):
        if match := _FILE.fullmatch(name):
            tables.setdefault(match["table"], []).append(name)
    return tables


def _listed(tables: Collection[str]) -> str:
    return ", ".join(sorted(tables)) or "none"


def _shard_name(table: str, number: int, count: int) -> str:
    return f"{table}.parquet" if count == 1 else f"{table}-{number:05d}-of-{count:05d}.parquet"


def _listing(source: Path, part: int) -> list[str] | None:
    try:
        return list(_files(source, part))
    except (FileNotFoundError, NotADirectoryError):
        return None


def _manifest(source: Path, part: int, listing: Collection[str]) -> dict[str, str]:
    if MANIFEST not in listing:
        return {}
    with _opened(source, part) as folder, _regular(folder, MANIFEST) as file:
        return parse_manifest(file.read(LONGEST_MANIFEST).decode(errors="replace"))


def _files(source: Path, part: int) -> Iterator[str]:
    """Yield the names of the regular files of a part. Raises RunnerRefused for too many names of any kind."""
    with _opened(source, part) as folder, os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number == MAX_FILES:
                raise RunnerRefused(f"part {part} wrote more than {MAX_FILES} files")
            if entry.is_file(follow_symlinks=False):
                yield entry.name


@contextmanager
def _opened(source: Path, part: int) -> Iterator[int]:
    """Open the folder of a part. Raises NotADirectoryError if it or ``source`` is a link."""
    above = _open(source)
    try:
        folder = _open(str(part), above)
    finally:
        os.close(above)
    try:
        yield folder
    finally:
        os.close(folder)


def _open(folder: str | Path, above: int | None = None) -> int:
    try:
        return os.open(folder, _FOLDER, dir_fd=above)
    except OSError as error:
        if error.errno == errno.ELOOP:  # some systems report this for a link
            raise NotADirectoryError(error.errno, error.strerror, str(folder)) from None
        raise


def _bytes(source: Path, shard: Shard) -> int:
    with _opened(source, shard.part) as folder:
        return bytes_taken(os.stat(shard.file, dir_fd=folder, follow_symlinks=False))


def _place(folder: int, name: str, target: Path, left: int) -> int:
    """Link or copy a file of at most ``left`` bytes to ``target``; return its size."""
    unfinished = target.with_name(f".{target.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    with _regular(folder, name) as file:
        require_room([size := bytes_taken(os.fstat(file.fileno()))], left)
        try:
            os.link(name, unfinished, src_dir_fd=folder, follow_symlinks=False)
        except OSError:  # another file system, or one without links
            with unfinished.open("xb") as copy:
                size = _copy(file, copy, left)
    unfinished.replace(target)
    return size


@contextmanager
def _regular(folder: int, name: str) -> Iterator[BinaryIO]:
    """Open a regular file of a part, which may have been replaced since it was listed."""
    try:
        with untrusted.opened(name, folder) as file:
            if is_sparse(os.fstat(file.fileno())):
                raise RunnerRefused(f"the output file {name} is sparse")
            yield file
    except untrusted.NotRegular:
        raise RunnerRefused(f"the output file {name} is not a regular file") from None


def _copy(file: BinaryIO, copy: BinaryIO, left: int) -> int:
    """Copy a file, which may be growing; return its size, or raise RunnerRefused beyond ``left``."""
    size = 0
    while block := file.read(_COPY_BYTES):
        require_room([size := size + len(block)], left)
        copy.write(block)
    return size
