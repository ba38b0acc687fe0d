"""Directories as git keeps them: trees named by their content, shared between commits."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from collidium_plugins.local_hub.failures import entry_not_found, invalid

#: Entries of one directory. Each commit rewrites its directories, so larger ones would be slow.
DIRECTORY_ENTRIES: Final = 20_000

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, or a directory (then without a content)."""

    #: git's name for it: of the blob, of the LFS pointer, or of the tree.
    oid: str
    size: int = 0
    sha256: str | None = None
    lfs: bool = False

    @property
    def is_directory(self) -> bool:
        return self.sha256 is None

    @property
    def etag(self) -> str | None:
        """The entity tag for downloads."""
        return self.sha256 if self.lfs else self.oid

    @property
    def pointer_size(self) -> int:
        return len(_pointer(self.sha256 or "", self.size))


def regular_file(content: bytes, sha256: str) -> Entry:
    """A file that git itself would keep."""
    return Entry(_object("blob", content), len(content), sha256)


def large_file(sha256: str, size: int) -> Entry:
    """A file that git would keep as a pointer (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md)."""
    return Entry(_object("blob", _pointer(sha256, size)), size, sha256, lfs=True)


class Trees:
    """The trees of one repository, inside one transaction."""

    def __init__(self, db: sqlite3.Connection, repo_id: int) -> None:
        self._db = db
        self._repo_id = repo_id
        self._read: dict[str, dict[str, Entry]] = {}

    def read(self, oid: str) -> dict[str, Entry]:
        """The entries of a directory, by name; not to be changed."""
        if oid not in self._read:
            (entries,) = self._db.execute(
                "SELECT entries FROM trees WHERE repo_id = ? AND oid = ?", (self._repo_id, oid)
            ).fetchone()
            self._read[oid] = {name: Entry(*fields) for name, fields in json.loads(entries).items()}
        return self._read[oid]

    def write(self, entries: dict[str, Entry]) -> str:
        """Keep a directory; returns git's name for it."""
        if len(entries) > DIRECTORY_ENTRIES:
            raise invalid(f"A folder holds {DIRECTORY_ENTRIES:,} files at most; use subfolders")
        oid = _tree_oid(entries)
        document = json.dumps({name: (e.oid, e.size, e.sha256, e.lfs) for name, e in entries.items()})
        self._db.execute("INSERT OR IGNORE INTO trees VALUES (?, ?, ?)", (self._repo_id, oid, document))
        return oid

    def find(self, root: str, path: Path) -> Entry | None:
        """Return the entry at ``path``; the empty path is the root directory."""
        entry = Entry(root)
        for name in path:
            found = self.read(entry.oid).get(name) if entry.is_directory else None
            if found is None:
                return None
            entry = found
        return entry

    def walk(
        self,
        oid: str,
        prefix: Path = (),
        *,
        after: Path = (),
        recursive: bool = True,
        skipping: set[str] | None = None,
    ) -> Iterator[tuple[Path, Entry]]:
        """What is below a directory, in the order of the paths, from behind ``after`` on.

        Directories in ``skipping`` are left out; those that were walked are added to it.
        """
        if skipping is not None:
            if oid in skipping:
                return
            skipping.add(oid)
        for name, entry in sorted(self.read(oid).items()):
            path = (*prefix, name)
            if path > after:
                yield path, entry
            elif after[: len(path)] != path:
                continue
            if recursive and entry.is_directory:
                yield from self.walk(entry.oid, path, after=after, skipping=skipping)

    def files(self, root: str) -> Iterator[tuple[Path, Entry]]:
        """Every file."""
        return ((path, entry) for path, entry in self.walk(root) if not entry.is_directory)


class Draft:
    """A directory being changed; subdirectories are read when a change reaches them."""

    def __init__(self, trees: Trees, oid: str | None) -> None:
        self._trees = trees
        self._entries = dict(trees.read(oid)) if oid else {}
        self._open: dict[str, Draft] = {}

    def put(self, path: Path, entry: Entry) -> None:
        """Add or replace a file; raises HubError when a file or folder of that name is in the way."""
        name, *rest = path
        existing = self._entries.get(name)
        if rest:
            if existing is not None and not existing.is_directory:
                raise invalid(f"{name!r} is a file; nothing can be put below it")
            self._entries.setdefault(name, Entry(""))
            self._subdirectory(name).put(tuple(rest), entry)
        elif existing is not None and existing.is_directory:
            raise invalid(f"{name!r} is a folder; delete it before a file takes its name")
        else:
            self._entries[name] = entry

    def delete(self, path: Path, *, folder: bool) -> None:
        """Delete a file or a folder; raises HubError when there is none."""
        try:
            self._delete(path, folder)
        except KeyError:
            raise entry_not_found("/".join(path)) from None

    def _delete(self, path: Path, folder: bool) -> None:
        name, *rest = path
        if rest and self._entries[name].is_directory:
            self._subdirectory(name)._delete(tuple(rest), folder)  # noqa: SLF001 -- the same class
            if self._open[name].is_empty:
                self._remove(name)
        elif rest or self._entries[name].is_directory != folder:
            raise KeyError(name)
        else:
            self._remove(name)

    @property
    def is_empty(self) -> bool:
        return not self._entries

    def save(self) -> str:
        """Keep the directory with all that was changed below; returns git's name for it."""
        for name, draft in self._open.items():
            self._entries[name] = Entry(draft.save())
        return self._trees.write(self._entries)

    def _subdirectory(self, name: str) -> Draft:
        if name not in self._open:
            self._open[name] = Draft(self._trees, self._entries[name].oid or None)
        return self._open[name]

    def _remove(self, name: str) -> None:
        del self._entries[name]
        self._open.pop(name, None)


def _pointer(sha256: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def _object(kind: str, content: bytes) -> str:
    return hashlib.sha1(
        b"%b %d\0%b" % (kind.encode(), len(content), content), usedforsecurity=False
    ).hexdigest()


def _tree_oid(entries: dict[str, Entry]) -> str:
    def order(item: tuple[str, Entry]) -> bytes:
        return item[0].encode() + (b"/" if item[1].is_directory else b"")

    lines = (
        b"%b %b\0%b" % (b"40000" if e.is_directory else b"100644", name.encode(), bytes.fromhex(e.oid))
        for name, e in sorted(entries.items(), key=order)
    )
    return _object("tree", b"".join(lines))


def commit_oid(content: str) -> str:
    """git's name for a commit of this text."""
    return _object("commit", content.encode())
