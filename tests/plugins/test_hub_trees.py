"""Folders of the local hub: maximum sizes, and commits whose cost depends on their changes."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from collidium_plugins.local_hub import accounts, repositories
from collidium_plugins.local_hub.commits import Delete, Header, Put, apply_commit
from collidium_plugins.local_hub.repositories import Repo
from collidium_plugins.local_hub.store import Store
from collidium_plugins.local_hub.trees import DIRECTORY_ENTRIES, Entry, TreeDraft, Trees, regular_file


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "hub")) as store:
        yield store


def make_repo(store: Store, db: sqlite3.Connection) -> Repo:
    token = accounts.make_token(db, accounts.add(db, "ada"))
    repo, _ = repositories.create(db, accounts.owner_of(db, token), "models", None, "large", private=False)
    return repo


def bytes_kept(db: sqlite3.Connection) -> int:
    pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
    return int(db.execute(pages).fetchone()[0])


def test_small_commits_to_a_large_folder_stay_small(store: Store) -> None:
    entry = regular_file(b"x", store.blobs.write(b"x"))
    header = Header("change", "", None)

    def bytes_kept(db: sqlite3.Connection) -> int:
        (size,) = db.execute(
            "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        ).fetchone()
        return int(size)

    with store.database.writing() as db:
        repo = make_repo(store, db)
        files = [Put(("data", f"{number:05}.txt"), entry) for number in range(DIRECTORY_ENTRIES)]
        apply_commit(db, store.blobs, repo, "main", "ada", header, list(files))
        before = bytes_kept(db)
        for number, file in enumerate(files[:60]):
            changes = [Delete(file.path, folder=False), Put(("data", f"new-{number}"), entry)]
            head = apply_commit(db, store.blobs, repo, "main", "ada", header, list(changes))
        assert bytes_kept(db) - before < 2_000_000
        listed = [path for path, _ in Trees(db, repo.id).files(head.tree)]
    assert len(listed) == DIRECTORY_ENTRIES
    assert listed == sorted(listed)


def test_tree_follows_from_its_files_alone(store: Store) -> None:
    """Whatever the order of changes, it holds what a dictionary would, under the same name."""
    chance = random.Random(1)
    with store.database.writing() as db:
        trees = Trees(db, make_repo(store, db).id)
        expected: dict[str, Entry] = {}
        root = trees.write(None, {})
        for _ in range(40):
            draft = TreeDraft(trees, root)
            for _ in range(50):
                name = f"f{chance.randrange(400)}"
                if name in expected and chance.random() < 0.45:
                    draft.delete((name,), folder=False)
                    del expected[name]
                else:
                    expected[name] = regular_file(name.encode(), f"{chance.randrange(9):064}")
                    draft.put((name,), expected[name])
            root = draft.save()
            assert trees.read(root) == expected
            assert all(trees.find(root, (f"f{n}",)) == expected.get(f"f{n}") for n in range(400))
        assert trees.write(None, dict(sorted(expected.items()))) == root
        assert trees.write(root, dict.fromkeys(expected)) == trees.write(None, {})
