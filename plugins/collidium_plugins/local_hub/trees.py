"""Trees of directories, identified by their content and shared between commits.

A directory is a hash trie, so that a commit to a large one rewrites few entries. A node has up to 64 entries,
or 16 nodes by the next hexadecimal digit of the hash of the names. The shape depends on the names alone, so
that equal directories have equal ids.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Final

from collidium_plugins.local_hub.failures import entry_not_found, invalid

#: Maximum number of entries of a directory: each page of a listing reads all of them.
DIRECTORY_ENTRIES: Final = 20_000
#: Maximum number of entries of a leaf.
NODE_ENTRIES: Final = 64

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, or a directory, which has no ``sha256``."""

    #: git's id of the file or its LFS pointer; the id of the directory.
    oid: str
    size: int = 0
    sha256: str | None = None
    lfs: bool = False

    @property
    def is_directory(self) -> bool:
        return self.sha256 is None

    @property
    def etag(self) -> str | None:
        """The ETag of downloads."""
        return self.sha256 if self.lfs else self.oid

    @property
    def pointer_size(self) -> int:
        return len(_pointer(self.sha256 or "", self.size))


def regular_file(content: bytes, sha256: str) -> Entry:
    """Return the entry of a file outside LFS."""
    return Entry(_object("blob", content), len(content), sha256)


def large_file(sha256: str, size: int) -> Entry:
    """Return the entry of an LFS file (https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md)."""
    return Entry(_object("blob", _pointer(sha256, size)), size, sha256, lfs=True)


#: A leaf: entries by name. Otherwise, by hexadecimal digit, the id of a node and its number of entries.
Node = dict[str, Entry] | list[tuple[str, int] | None]


class Trees:
    """The trees of a repository, within one transaction."""

    def __init__(self, db: sqlite3.Connection, repo_id: int) -> None:
        self._db = db
        self._repo_id = repo_id
        self._read: dict[str, Node] = {}

    def read(self, oid: str) -> dict[str, Entry]:
        """Return the entries of a directory by name. Do not modify them."""
        node = self._node(oid)
        if isinstance(node, dict):
            return node
        return {name: entry for part in node if part for name, entry in self.read(part[0]).items()}

    def count(self, oid: str) -> int:
        """Return the number of entries of a directory."""
        node = self._node(oid)
        return len(node) if isinstance(node, dict) else _count(node)

    def entry(self, oid: str, name: str) -> Entry | None:
        """Return the entry of a directory with this name."""
        node, depth = self._node(oid), 0
        while not isinstance(node, dict):
            part = node[_digit(name, depth)]
            if part is None:
                return None
            node, depth = self._node(part[0]), depth + 1
        return node.get(name)

    def write(self, oid: str | None, changes: Mapping[str, Entry | None]) -> str:
        """Store a directory, new or changed from ``oid``; None removes an entry. Returns its id."""
        changed, count = self._change(oid, changes, 0)
        if count > DIRECTORY_ENTRIES:
            raise invalid(f"A folder can hold at most {DIRECTORY_ENTRIES:,} files; use subfolders")
        return changed

    def _change(self, oid: str | None, changes: Mapping[str, Entry | None], depth: int) -> tuple[str, int]:
        node = self._node(oid) if oid else {}
        if isinstance(node, dict):
            entries = {name: entry for name, entry in {**node, **changes}.items() if entry is not None}
            if len(entries) <= NODE_ENTRIES:
                return self._keep(entries), len(entries)
            node, changes = [None] * 16, entries
        parts = list(node)
        shares: dict[int, dict[str, Entry | None]] = {}
        for name, entry in changes.items():
            shares.setdefault(_digit(name, depth), {})[name] = entry
        for digit, share in shares.items():
            before = parts[digit]
            changed = self._change(before[0] if before else None, share, depth + 1)
            parts[digit] = changed if changed[1] else None
        count = _count(parts)
        if count <= NODE_ENTRIES:
            together = {name: entry for part in parts if part for name, entry in self.read(part[0]).items()}
            return self._keep(together), count
        return self._keep(parts), count

    def _node(self, oid: str) -> Node:
        if oid not in self._read:
            (document,) = self._db.execute(
                "SELECT entries FROM trees WHERE repo_id = ? AND oid = ?", (self._repo_id, oid)
            ).fetchone()
            found = json.loads(document)
            if isinstance(found, dict):
                self._read[oid] = {name: Entry(*fields) for name, fields in found.items()}
            else:
                self._read[oid] = [part and (part[0], part[1]) for part in found]
        return self._read[oid]

    def _keep(self, node: Node) -> str:
        plain = {name: astuple(entry) for name, entry in node.items()} if isinstance(node, dict) else node
        document = json.dumps(plain, sort_keys=True)
        oid = _object("tree", document.encode())
        self._db.execute("INSERT OR IGNORE INTO trees VALUES (?, ?, ?)", (self._repo_id, oid, document))
        return oid

    def find(self, root: str, path: Path) -> Entry | None:
        """Return the entry at ``path``; the empty path is the root directory."""
        entry = Entry(root)
        for name in path:
            found = self.entry(entry.oid, name) if entry.is_directory else None
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
        """Yield the entries below a directory in order of their paths, those after ``after``.

        Skips directories whose ids are in ``skipping``, and adds the ids of visited ones to it.
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
        """Yield all files below a directory."""
        return ((path, entry) for path, entry in self.walk(root) if not entry.is_directory)


class TreeDraft:
    """A directory with pending changes. Reads existing entries only as needed."""

    def __init__(self, trees: Trees, oid: str | None) -> None:
        self._trees = trees
        self._oid = oid
        self._count = trees.count(oid) if oid else 0
        self._changes: dict[str, Entry | None] = {}
        self._open: dict[str, TreeDraft] = {}

    def put(self, path: Path, entry: Entry) -> None:
        """Add or replace a file; raises HubError if it would replace a folder or be below a file."""
        name, *rest = path
        existing = self._get(name)
        if rest:
            if existing is not None and not existing.is_directory:
                raise invalid(f"{name!r} is a file and cannot have files below it")
            if existing is None:
                self._set(name, Entry(""))
            self._subdirectory(name).put(tuple(rest), entry)
        elif existing is not None and existing.is_directory:
            raise invalid(f"{name!r} is a folder; delete it before a file takes its name")
        else:
            self._set(name, entry)

    def delete(self, path: Path, *, folder: bool) -> None:
        """Delete a file or a folder; raises HubError if it does not exist."""
        if not self._delete(path, folder):
            raise entry_not_found("/".join(path))

    def _delete(self, path: Path, folder: bool) -> bool:
        """Return whether the file or folder existed."""
        name, *rest = path
        existing = self._get(name)
        if existing is None or (existing.is_directory != folder and not rest):
            return False
        if rest:
            below = self._subdirectory(name) if existing.is_directory else None
            if below is None or not below._delete(tuple(rest), folder):  # noqa: SLF001 -- the same class
                return False
            if below._count:  # noqa: SLF001 -- the same class
                return True
        self._set(name, None)
        self._open.pop(name, None)
        return True

    def save(self) -> str:
        """Store the directory with all changes below it, and return its id."""
        for name, draft in self._open.items():
            self._set(name, Entry(draft.save()))
        return self._trees.write(self._oid, self._changes)

    def _get(self, name: str) -> Entry | None:
        if name in self._changes or self._oid is None:
            return self._changes.get(name)
        return self._trees.entry(self._oid, name)

    def _set(self, name: str, entry: Entry | None) -> None:
        self._count += (entry is not None) - (self._get(name) is not None)
        self._changes[name] = entry

    def _subdirectory(self, name: str) -> TreeDraft:
        if name not in self._open:
            entry = self._get(name)
            self._open[name] = TreeDraft(self._trees, (entry and entry.oid) or None)
        return self._open[name]


def _digit(name: str, depth: int) -> int:
    return int(hashlib.sha256(name.encode()).hexdigest()[depth], 16)


def _count(parts: list[tuple[str, int] | None]) -> int:
    return sum(part[1] for part in parts if part)


def _pointer(sha256: str, size: int) -> bytes:
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{sha256}\nsize {size}\n".encode()


def _object(kind: str, content: bytes) -> str:
    return hashlib.sha1(
        b"%b %d\0%b" % (kind.encode(), len(content), content), usedforsecurity=False
    ).hexdigest()


def commit_oid(content: str) -> str:
    """Return git's id of a commit with this text."""
    return _object("commit", content.encode())
