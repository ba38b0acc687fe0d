"""Backups of a server under load, and how they are restored."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from shutil import copytree, rmtree, which
from subprocess import CompletedProcess
from threading import Event
from typing import Any

import httpx
import pyarrow as pa
import pytest
from tests.waiting import eventually

from collidium import backup, database, settings
from collidium.backup import contents
from collidium.backup.contents import DATABASES
from collidium.backup.objects import drop_others, objects
from collidium.errors import ConfigurationError
from collidium.files.held import locked
from collidium.runtime.failpoints import VARIABLE
from collidium.testing.server import ServerProcess, run_command

from .conftest import SUBMIT, OpenPlatform, calling, files_below, ok, operating, parquet, signed_in, spoiled
from .test_benchmark_api import submit

BOARD = "/v1/leaderboard/tracking?all=true&limit=1000"
SETTINGS = {
    "PLATFORM_MOCK_SECONDS": "0",
    "PLATFORM_SIGNUP_GRANT": "1000",
    "PLATFORM_SUBMISSIONS_PER_DAY": "1000",
    "PLATFORM_BURST_REQUESTS": "1000",
    "PLATFORM_UNFINISHED_REQUESTS": "1000",
}


def run(server: ServerProcess, *arguments: str, failpoint: str = "") -> CompletedProcess[str]:
    environment = server.environment | ({VARIABLE: failpoint} if failpoint else {})
    return run_command((*arguments, "--json"), environment, server.directory)


def done(server: ServerProcess, *arguments: str) -> Any:
    result = run(server, *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def board(server: ServerProcess) -> Any:
    return ok(httpx.get(f"{server.base_url}{BOARD}", trust_env=False))


def test_a_backup_under_load_is_whole(
    open_platform: OpenPlatform, database_url: str, tmp_path: Path, oracle: pa.Table
) -> None:
    """No submission without its file, no credit without its entry, no rank without its score."""
    stop, tokens = Event(), dict[str, str]()

    def predictions(number: int) -> bytes:
        return parquet(spoiled(oracle, 0.5 + number / 1000, number))

    def repeat(act: Callable[[httpx.Client, int], httpx.Response], name: str) -> int:
        with signed_in(server, name) as client:
            tokens[name] = client.headers["Authorization"]
            for number in range(300):
                if stop.is_set():
                    return number
                answer = act(client, number)
                assert answer.is_success, answer.text
        return number

    def send(client: httpx.Client, number: int) -> httpx.Response:
        return client.post(SUBMIT, content=predictions(number))

    def order(client: httpx.Client, number: int) -> httpx.Response:
        order = {"channel": "ttbar", "events": 1, "pileup": 0, "seed": number}
        return client.post("/v1/simulate", json=order)

    with open_platform(tmp_path / "server", SETTINGS) as server, ThreadPoolExecutor(2) as pool:
        writers = [pool.submit(repeat, send, "alice"), pool.submit(repeat, order, "bob")]
        try:
            eventually(lambda: bool(board(server)))
            made = done(server, "backup", str(tmp_path / "backup"))
        finally:
            stop.set()
        assert all(writer.result() for writer in writers)
        before = {row["submission_id"]: row for row in board(server)}
    assert made["missing"] == []
    target = ServerProcess(tmp_path / "restored", database_url, SETTINGS)
    restored = done(target, "restore", str(tmp_path / "backup"))
    assert restored["missing"] == []
    assert restored["stored_files"] == made["stored_files"] > 0
    assert run(target, "ledger", "audit").returncode == 0
    with target:
        after = {row["submission_id"]: row for row in board(target)}
        assert after
        for name, row in after.items():
            assert row["scores"] == before[name]["scores"]
        # Her token, which the restored hub knows, and her file.
        with calling(target, Authorization=tokens["alice"]) as alice:
            assert ok(alice.post(SUBMIT, content=predictions(0)))["deduplicated"] is True


def test_a_killed_backup_or_restore_is_not_taken_for_a_whole_one(
    open_platform: OpenPlatform, database_url: str, tmp_path: Path, oracle: pa.Table
) -> None:
    backup = tmp_path / "backups" / "one"
    with open_platform(tmp_path / "server", SETTINGS) as server:
        with signed_in(server, "alice") as alice:
            for number in range(2):
                assert submit(alice, spoiled(oracle, 0.8, number)).is_success
        for place in ("backup.database", "backup.files"):
            killed = run(server, "backup", str(backup), failpoint=place)
            assert killed.returncode == -signal.SIGKILL, killed.stderr
            assert not backup.exists()
        for name in ("seed/state.json", "seed/cache/large", "uploads/torn", "hub/uploads/torn"):
            (server.data_dir / name).parent.mkdir(parents=True, exist_ok=True)
            (server.data_dir / name).write_text("{}")
        with locked(backup.parent / "unfinished-backup"):
            assert "another backup" in run(server, "backup", str(backup)).stderr
        unfinished = backup.parent / "unfinished-backup" / "backup"
        (unfinished / "storage" / "of-an-erased-account").write_text("")
        copies = files_below(unfinished / "storage" / "predictions")
        damaged, *whole = copies
        content, times = damaged.read_bytes(), damaged.stat()
        damaged.write_bytes(content[:-1])
        changed = {path.name: path.stat().st_ctime_ns for path in whole}
        assert changed
        made = done(server, "backup", str(backup))
        copied = backup / "storage" / "predictions"
        assert {name: (copied / name).stat().st_ctime_ns for name in changed} == changed, "not copied again"
        assert (copied / damaged.name).read_bytes() == content
        assert (copied / damaged.name).stat().st_mtime_ns == times.st_mtime_ns
        assert not any(path.stat().st_mode & 0o077 for path in files_below(backup))
        kept = {path.name for path in files_below(backup)}
        assert kept >= {"state.json", "hub.sqlite3", "manifest.json"}
        assert not kept & {"large", "torn", "of-an-erased-account"}
        assert [path.name for path in backup.parent.iterdir()] == ["one"], "what was interrupted is this one"
        with operating(server) as operator:
            gauge = r"^collidium_last_backup_timestamp_seconds (\S+)$"
            (moment,) = re.findall(gauge, operator.get("/metrics").text, re.MULTILINE)
        assert abs(float(moment) - datetime.fromisoformat(made["made_at"]).timestamp()) < 60
        before = board(server)
    target = ServerProcess(tmp_path / "restored", database_url, SETTINGS)
    for place in ("restore.copied", "restore.files"):
        killed = run(target, "restore", str(backup), failpoint=place)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert "the data directory is not empty" in run(target, "restore", str(backup)).stderr
    rmtree(target.data_dir)
    assert done(target, "restore", str(backup))["files"] == made["files"]
    assert (target.data_dir / "seed" / "state.json").read_text() == "{}"
    secrets = [path for path in files_below(backup) if path.name in {"secret-key", "admin-token"}]
    assert len(secrets) == (0 if "PLATFORM_SECRET_KEY" in target.environment else 2)
    assert all((target.data_dir / path.name).stat().st_mode & 0o777 == 0o600 for path in secrets)
    with target:
        assert board(target) == before
    again = run(target, "restore", str(backup))
    assert again.returncode != 0
    assert "already" in again.stderr or "tables" in again.stderr


@pytest.fixture(scope="module")
def made(
    open_platform: OpenPlatform, tmp_path_factory: pytest.TempPathFactory, oracle: pa.Table
) -> tuple[Path, list[str]]:
    """A backup with one submission, and what a later one said is missing: the file was damaged meanwhile."""
    directory = tmp_path_factory.mktemp("made")
    with open_platform(directory / "server", SETTINGS) as server:
        with signed_in(server, "alice") as alice:
            assert submit(alice, oracle).is_success
        done(server, "backup", str(directory / "backup"))
        (kept,) = files_below(server.data_dir / "storage" / "predictions")
        kept.write_bytes(kept.read_bytes()[:-1] + b"x")
        damaged = run(server, "backup", str(directory / "damaged"))
        assert damaged.returncode == 1
    return directory / "backup", json.loads(damaged.stdout)["missing"]


@pytest.fixture
def copied(made: tuple[Path, list[str]], tmp_path: Path) -> Path:
    """A copy of the backup, to be spoiled."""
    return Path(copytree(made[0], tmp_path / "backup"))


def test_a_damaged_backup_is_refused_and_nothing_is_written(
    made: tuple[Path, list[str]], copied: Path, database_url: str, tmp_path: Path
) -> None:
    (copy,) = files_below(copied / "storage" / "predictions")
    assert made[1] == [f"predictions/{copy.name}"]
    whole = copy.read_bytes()
    target = ServerProcess(tmp_path / "restored", database_url, SETTINGS)
    for content, problem in (
        (whole[:-1] + b"x", "is damaged"),
        (whole[:-1], "missing or not whole"),
        (None, "missing or not whole"),
    ):
        copy.unlink()
        if content is not None:
            copy.write_bytes(content)
        refused = run(target, "restore", str(copied))
        assert refused.returncode != 0
        assert problem in refused.stderr
        assert files_below(target.data_dir) == []
    copy.write_bytes(whole)
    other = ServerProcess(
        tmp_path / "other", "postgres://app@nowhere.invalid/x" if "sqlite" in database_url else None
    )
    assert "database" in run(other, "restore", str(copied)).stderr
    done(target, "restore", str(copied))


def test_a_hostile_backup_writes_nowhere_else(copied: Path, database_url: str, tmp_path: Path) -> None:
    """A name that leads into the backup when it is read may lead elsewhere when it is written."""
    backup = copied
    manifest = json.loads((backup / "manifest.json").read_text())
    (backup / "a" / "b").mkdir(parents=True)
    (backup / "x").write_text("x")
    (backup / "link").symlink_to("a/b")
    file = {"bytes": 1, "sha256": sha256(b"x").hexdigest()}
    names = ["../backup/x", "link/../../x", "storage/../x", str(backup / "x"), "link"]
    manifest["files"] |= dict.fromkeys(names, file)
    (backup / "manifest.json").write_text(json.dumps(manifest))
    target = ServerProcess(tmp_path / "restored", database_url, SETTINGS)
    refused = run(target, "restore", str(backup))
    assert refused.returncode != 0
    assert refused.stderr.count("leads out of the backup") == len(names), refused.stderr
    assert files_below(target.data_dir) == []


def test_a_crafted_backup_is_refused_and_nothing_is_left(
    copied: Path, database_url: str, tmp_path: Path
) -> None:
    manifest = copied / "manifest.json"
    good = json.loads(manifest.read_text())
    (database_file,) = set(DATABASES.values()) & good["files"].keys()
    junk = b"x" * good["files"][database_file]["bytes"]
    one = {"bytes": 1, "sha256": sha256(b"x").hexdigest()}
    files = good["files"]
    cases: list[tuple[dict[str, Any], bytes | None, str]] = [
        (files | {"storage/a\0b": one}, None, "cannot be a path"),
        (files | {"storage/" + "x" * 5000: one}, None, "cannot be a path"),
        ({name: file for name, file in files.items() if name != database_file}, None, "it has no database"),
        (
            files | {database_file: {"bytes": len(junk), "sha256": sha256(junk).hexdigest()}},
            junk,
            "not a database" if "sqlite" in database_url else "pg_restore",
        ),
        (
            files | {database_file: {"bytes": 0, "sha256": sha256(b"").hexdigest()}},
            b"",
            "no such table" if "sqlite" in database_url else "pg_restore",
        ),
    ]
    if "sqlite" in database_url:  # with PostgreSQL the key is a setting
        keyless = {name: file for name, file in files.items() if name != "secret-key"}
        cases.insert(0, (keyless, None, "it has no secret-key"))
    for number, (named, content, problem) in enumerate(cases):
        manifest.write_text(json.dumps(good | {"files": named}))
        if content is not None:
            (copied / database_file).write_bytes(content)
        target = ServerProcess(tmp_path / f"restored-{number}", database_url, SETTINGS)
        refused = run(target, "restore", str(copied))
        assert (refused.returncode != 0, "Traceback" in refused.stderr) == (True, False), problem
        assert problem in refused.stderr
        assert files_below(target.data_dir) == []


async def test_a_failed_restore_keeps_its_error_without_database(
    copied: Path, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database goes away in the restore, so that it cannot be emptied either."""

    async def gone(url: str, *_: object) -> None:
        monkeypatch.setattr(backup, "drop_others", lambda _, kept: drop_others(f"{url}-absent", kept))
        raise ConfigurationError("the original")

    monkeypatch.setattr(database, "migrate", gone)
    with pytest.raises(ConfigurationError, match="the original") as raised:
        await backup.restore(settings.load(data_dir=tmp_path / "restored", database_url=database_url), copied)
    if not database_url.startswith("sqlite"):  # of which the file is deleted
        assert any("could not be emptied" in note for note in raised.value.__notes__)


#: As if a later release had migrated the database.
_LATER = (
    "INSERT INTO tortoise_migrations (app, name, applied_at) "
    "SELECT app, '9999_later', applied_at FROM tortoise_migrations LIMIT 1"
)
_MORE = "CREATE SCHEMA a; CREATE TYPE a.b AS ENUM ('c'); CREATE SEQUENCE d"


async def test_a_failed_restore_leaves_the_database_empty(
    copied: Path, database_url: str, tmp_path: Path
) -> None:
    """A second try finds it as the first has: here the dump is whole, but of a later release."""
    target = ServerProcess(tmp_path / "restored", database_url, SETTINGS)
    (name,) = {path.name for path in copied.iterdir()} & set(DATABASES.values())
    file, manifest = copied / name, copied / "manifest.json"
    good = file.read_bytes(), manifest.read_bytes()
    is_sqlite = name == DATABASES["sqlite"]
    empty = [] if is_sqlite else await objects(database_url)
    if is_sqlite:
        with closing(sqlite3.connect(file)) as db:
            db.execute(_LATER)
            db.commit()
    else:
        done(target, "restore", str(copied))
        async with database.connected(database_url):
            await database.connection().execute_script(f"{_LATER}; {_MORE}")
        options = ("--format=custom", "--no-owner", f"--file={file}")
        await asyncio.to_thread(contents._run, database_url, "pg_dump", *options)
        await drop_others(database_url, empty)
        rmtree(target.data_dir)
    described: dict[str, Any] = json.loads(good[1])
    size, hashed = file.stat().st_size, sha256(file.read_bytes()).hexdigest()
    described["files"][name] = {"bytes": size, "sha256": hashed}
    manifest.write_text(json.dumps(described))
    refused = run(target, "restore", str(copied))
    assert refused.returncode != 0
    assert "9999_later" in refused.stderr
    assert files_below(target.data_dir) == []
    assert is_sqlite or await objects(database_url) == empty
    file.write_bytes(good[0])
    manifest.write_bytes(good[1])
    done(target, "restore", str(copied))


def test_the_log_of_a_deleted_database_is_not_restored(made: tuple[Path, list[str]], tmp_path: Path) -> None:
    """A server that was killed leaves one, and SQLite would apply it."""
    target = ServerProcess(tmp_path / "restored")
    log = target.data_dir / "collidium.sqlite3-wal"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_bytes(b"x")
    assert f"there is a database already: {log}" in run(target, "restore", str(made[0])).stderr


async def test_a_dump_may_take_longer_than_transactions(
    migrated_database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The snapshot of one that a server ended names no files."""
    if migrated_database_url.startswith("sqlite"):
        return
    async with database.connected(migrated_database_url):
        await database.connection().execute_script(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET idle_in_transaction_session_timeout = 1000', "
            "current_database()); END $$"
        )
    slow = tmp_path / "bin" / "pg_dump"
    slow.parent.mkdir()
    slow.write_text(f'#!/bin/sh\nsleep 2\nexec {which("pg_dump")} "$@"\n')
    slow.chmod(0o755)
    monkeypatch.setenv("PATH", str(slow.parent), prepend=os.pathsep)
    chosen = settings.load(database_url=migrated_database_url, data_dir=tmp_path / "data")
    assert (await backup.make(chosen, tmp_path / "backup")).missing == ()
