"""Migrations, the refusal of unknown schemas, and transactions under cancellation."""

from __future__ import annotations

import asyncio
import json
import shutil
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.core import killed_migrations
from tortoise import Tortoise
from tortoise.exceptions import OperationalError
from tortoise.migrations.autodetector import MigrationAutodetector
from tortoise.transactions import in_transaction

from collidium import accounts, database, simulations
from collidium.accounts.models import Account
from collidium.challenges import Participant, gate
from collidium.challenges.models import Arrival, Challenge
from collidium.database import connections
from collidium.database.connections import APP
from collidium.errors import ConfigurationError
from collidium.model_runs.models import ModelFile
from collidium.order import LARGEST_SEED, Order
from collidium.simulations.models import SimulationRequest, order_columns
from collidium.submissions.models import Submission
from collidium.testing.databases import Databases, sqlite_url
from collidium.truth.models import TruthVersion

TRANSACTIONS = [database.transactional, database.transactional_at_once]
RELEASES = Path(__file__).with_name("releases")
COLUMNS = {
    "sqlite": 'SELECT t.name AS table_name, c.name, c.type, c."notnull" FROM sqlite_master t '
    "JOIN pragma_table_info(t.name) c WHERE t.type = 'table' ORDER BY 1, 2",
    "postgresql": "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
    "WHERE table_schema = 'public' ORDER BY 1, 2",
}
MIGRATE = "import asyncio, sys; from collidium import database; asyncio.run(database.migrate(sys.argv[1]))"


async def test_an_empty_database_is_reported_and_migrates(database_url: str) -> None:
    (problem,) = await database.check(database_url)
    assert "collidium db migrate" in problem
    await database.migrate(database_url)
    assert await database.check(database_url) == []
    await database.migrate(database_url)


def test_processes_that_migrate_at_once_do_not_meet(database_url: str) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", MIGRATE, database_url]) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0] * 4
    assert asyncio.run(database.check(database_url)) == []


async def test_the_log_of_sqlite_keeps_its_length(tmp_path: Path) -> None:
    """A log that starts anew is written over, not cut and extended again."""
    path = tmp_path / "log.sqlite3"
    async with database.connected(sqlite_url(path)):
        client = database.connection()
        await client.execute_query("CREATE TABLE pages (page BLOB)")
        # Past the size at which a commit moves all pages to the database: the next one starts the log anew.
        await client.execute_query("INSERT INTO pages VALUES (zeroblob(5000000))")
        length = Path(f"{path}-wal").stat().st_size
        await client.execute_query("INSERT INTO pages VALUES (zeroblob(1))")
        assert Path(f"{path}-wal").stat().st_size == length > 5_000_000


async def test_a_schema_from_the_future_is_refused(migrated_database_url: str) -> None:
    async with database.connected(migrated_database_url):
        await database.connection().execute_query(
            "INSERT INTO tortoise_migrations (app, name, applied_at) "
            "VALUES ('collidium', '9999_future', CURRENT_TIMESTAMP)"
        )
        with pytest.raises(ConfigurationError, match="of another version of the platform: 9999_future"):
            await database.require_known_schema()
    with pytest.raises(ConfigurationError, match="another version"):
        await database.migrate(migrated_database_url)


async def test_tables_without_a_record_are_reported(migrated_database_url: str) -> None:
    """As a migration left them that was killed before the schema and its record were one transaction."""
    async with database.connected(migrated_database_url):
        await database.rows_of("DELETE FROM tortoise_migrations")
    (problem,) = await database.check(migrated_database_url)
    assert "tables that they create exist: accounts, arrivals, audit_log," in problem
    assert "restore a backup" in problem
    with pytest.raises(ConfigurationError, match="tables that they create exist: accounts"):
        await database.migrate(migrated_database_url)


async def _orders_of_0_4_0() -> dict[str, Order]:
    """The orders in the columns of 0.4.0; one is added that needs all of them."""
    (row,) = await database.rows_of("SELECT * FROM simulation_requests")
    longest = {
        "channel": 'a"\\é',
        "events": 7,
        "pileup": 200,
        "seed": str(LARGEST_SEED),
        "vary": "field=0.99",
    }
    added = dict(row) | {"id": 2, "request_id": "r2", "handle": "r2"} | longest
    values = ", ".join("?" * len(added))
    await database.together(
        database.Statement(
            f"INSERT INTO simulation_requests ({', '.join(added)}) VALUES ({values})", [*added.values()]
        )
    )
    rows = await database.rows_of(
        "SELECT request_id, channel, events, pileup, seed, vary FROM simulation_requests"
    )
    return {
        row["request_id"]: Order(row["channel"], row["events"], row["pileup"], int(row["seed"]), row["vary"])
        for row in rows
    }


async def _begin_deletions_of_0_4_0() -> None:
    """Two of one file, of which the first was killed, and one given up; another file is being received."""
    rows = [
        ("given_up", "", "2026-11-21 00:00:00+00:00", None),
        ("deletion1", "", "2026-11-22 00:00:00+00:00", "a" * 64),
        ("deletion2", "", "2026-11-23 00:00:00+00:00", "a" * 64),
        ("received", "tracking", "2026-11-23 00:00:00+00:00", "b" * 64),
    ]
    for row in rows:
        values = ", ".join("NULL" if value is None else f"'{value}'" for value in row)
        await database.connection().execute_script(
            f"INSERT INTO arrivals (id, challenge, leased_until, sha256) VALUES ({values})"
        )


async def _split_a_truth_of_0_4_0() -> None:
    """Its challenge counts the public part, and holds back the final one; one name only looks like a part."""
    (truth,) = await database.rows_of("SELECT * FROM truth_versions")
    for number, suffix in enumerate(("-public30", "-final30", "-public300"), truth["id"] + 1):
        row = dict(truth) | {"id": number, "version": truth["version"] + suffix}
        sql = f"INSERT INTO truth_versions ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        await database.together(database.Statement(sql, [*row.values()]))
    await database.connection().execute_script(
        f"UPDATE challenges SET truth_version = '{truth['version']}-public30' WHERE name = 'spring-2026'"
    )


@pytest.mark.parametrize("release", sorted(RELEASES.iterdir()), ids=lambda release: release.name)
async def test_database_of_a_release_is_upgraded(_databases: Databases, release: Path) -> None:  # noqa: PT019 -- it makes several
    """Run fill_release again after a change to the schema of a release that is not out yet."""
    with _databases.empty() as url, _databases.migrated() as new:
        kind = "sqlite" if url.startswith("sqlite") else "postgresql"
        script = (release / f"{kind}.sql").read_text()
        if kind == "sqlite":  # by a connection that checks no foreign keys meanwhile
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db:
                db.executescript(script)
        else:
            async with database.connected(url):
                await database.connection().execute_script(script)
        async with database.connected(url):
            ordered = await _orders_of_0_4_0()
            await _begin_deletions_of_0_4_0()
            await _split_a_truth_of_0_4_0()
        await database.migrate(url)
        assert await database.check(url) == []
        async with database.connected(url):
            requests = await SimulationRequest.all()
            await SimulationRequest.filter(request_id="r2").delete()
            deletions = await ModelFile.all().values_list("sha256", "deleting_until")
            assert deletions == [("a" * 64, datetime(2026, 11, 23, tzinfo=UTC))]
            participants = (
                await Submission.all().order_by("submitted_at").values_list("participant", flat=True)
            )
            assert participants == [
                Participant.account(1),
                Participant.account(2),
                *[Participant.team(1)] * 2,
            ]
            assert await Arrival.all().values_list("id", flat=True) == ["received"]
            truth = (await Challenge.get(name="tracking")).truth_version
            assert await TruthVersion.all().order_by("id").values_list("version", "whole", "kind") == [
                (truth, truth, None),
                (truth.part("public", 30), truth, "public"),
                (truth.part("final", 30), truth, "final"),
                (f"{truth}-public300", f"{truth}-public300", None),
            ]
            assert await gate.is_held_back("tracking", truth)
            sharing = await gate.sharing("tracking", "", truth)
            assert [row.name for row in sharing] == ["spring-2026", "tracking"]
            assert await accounts.audit() == await simulations.audit() == []
            tables = Tortoise.apps[APP].values() if Tortoise.apps else ()
            empty = {model.__name__ for model in tables if not await model.all()}
            assert not empty & {"Submission", "BenchmarkBest", "CreditTransaction", "SimulationRequest"}
            upgraded = await database.rows_of(COLUMNS[kind])
        assert {row.request_id: row.order for row in requests} == ordered
        for row in requests:  # as a new row has them
            columns = order_columns(ordered[row.request_id])
            assert (row.channel, row.seed) == (columns["channel"], columns["seed"])
            assert json.loads(row.order_json) == json.loads(columns["order_json"])
        async with database.connected(new):
            assert upgraded == await database.rows_of(COLUMNS[kind])


@pytest.mark.parametrize("url", ["mysql://root@localhost/x", "nonsense", "sqlite:"])
async def test_another_kind_of_database_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match="PLATFORM_DATABASE_URL"):
        await database.check(url)


async def test_a_database_that_is_away_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be reached"):
        await database.check(f"postgres://app@/nothing?host={tmp_path}")


async def test_no_model_was_changed_without_a_migration(connected: str) -> None:
    apps = Tortoise.apps
    assert apps is not None
    assert await MigrationAutodetector(apps, database.config(connected)["apps"]).changes() == []


@pytest.mark.parametrize("transaction", TRANSACTIONS)
async def test_a_failed_transaction_leaves_nothing(connected: str, transaction: Any) -> None:
    @transaction
    async def fail() -> None:
        await Account.create(hub_username="ghost")
        raise LookupError

    with pytest.raises(LookupError):
        await fail()
    assert not await Account.exists(hub_username="ghost")


@pytest.mark.parametrize("transaction", TRANSACTIONS)
async def test_a_script_is_part_of_its_transaction(connected: str, transaction: Any) -> None:
    @transaction
    async def fail() -> None:
        client = database.connection()
        await client.execute_script("CREATE TABLE a (x TEXT); INSERT INTO a VALUES (';'); -- one; row")
        async with in_transaction() as inner:
            await inner.execute_script("INSERT INTO a VALUES ('b')")
        assert len(await database.rows_of("SELECT x FROM a")) == 2
        raise LookupError

    with pytest.raises(LookupError):
        await fail()
    with pytest.raises(OperationalError):
        await database.rows_of("SELECT x FROM a")


@pytest.mark.parametrize("transaction", TRANSACTIONS)
async def test_an_inner_transaction_is_the_outer_one(connected: str, transaction: Any) -> None:
    @transaction
    async def inner() -> None:
        await Account.create(hub_username="inner")

    @transaction
    async def outer() -> None:
        await inner()
        raise LookupError

    with pytest.raises(LookupError):
        await outer()
    assert not await Account.exists(hub_username="inner")


@pytest.mark.parametrize("transaction", TRANSACTIONS)
async def test_cancelled_callers_leave_no_lock_behind(connected: str, transaction: Any) -> None:
    @transaction
    async def write(n: int) -> None:
        await Account.create(hub_username=f"user{n}")

    for n in range(30):
        task = asyncio.ensure_future(write(n))
        for _ in range(n % 7):
            await asyncio.sleep(0)
        task.cancel()
    async with asyncio.timeout(30):
        await write(99)
    assert await Account.exists(hub_username="user99")


async def test_a_transaction_at_once_awaits_nothing_else(connected: str) -> None:
    """On SQLite: it would hold the thread of the database. Nothing of it is left."""

    @database.transactional_at_once
    async def wait() -> None:
        await Account.create(hub_username="ghost")
        await asyncio.sleep(0)

    if connected.startswith("sqlite"):
        with pytest.raises(RuntimeError, match="only the database"):
            await wait()
        assert not await Account.exists(hub_username="ghost")


async def test_an_abandoned_transaction_is_not_counted_by_the_next(connected: str) -> None:
    """An update says how many rows it changed, by which callers decide; the one before may still go on."""
    loop, began, may_end = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    @database.transactional_at_once
    async def create() -> None:
        if connected.startswith("sqlite"):  # in the database's thread
            loop.call_soon_threadsafe(began.set)
            may_end.wait(30)
        await Account.create(hub_username="ghost")
        began.set()

    creating = asyncio.create_task(create())
    await began.wait()
    creating.cancel()
    await asyncio.gather(creating, return_exceptions=True)

    async def update() -> int:
        return await Account.filter(hub_username="unknown").update(banned=True)

    updating = asyncio.create_task(update())
    await asyncio.sleep(0)  # it asks for the connection
    may_end.set()
    assert await updating == 0


async def test_a_task_outliving_its_transaction_gets_its_own(connected: str) -> None:
    ended = asyncio.Event()

    @database.transactional
    async def fail() -> None:
        await Account.create(hub_username="ghost")
        raise LookupError

    async def later() -> None:
        await ended.wait()
        await fail()

    @database.transactional
    async def outer() -> asyncio.Task[None]:
        return asyncio.ensure_future(later())

    task = await outer()
    ended.set()
    with pytest.raises(LookupError):
        await task
    assert not await Account.exists(hub_username="ghost")


ALTERED = """
from tortoise import fields, migrations
from tortoise.migrations import operations as ops

class Migration(migrations.Migration):
    dependencies = [("collidium", "0001_hits")]
    operations = [ops.AlterField(model_name="Hit", name="layer", field=fields.BigIntField())]
"""


async def test_a_migration_that_loses_a_trigger_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = sqlite_url(tmp_path / "platform.db")
    package = tmp_path / "altering"
    package.mkdir()
    shutil.copy(Path(killed_migrations.__file__).with_name("0001_hits.py"), package)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(connections, "MIGRATIONS", "altering")
    await database.migrate(url)
    (package / "0002_altered.py").write_text(ALTERED)

    with pytest.raises(ConfigurationError, match="dropped triggers: hits_stay"):
        await database.migrate(url)
    assert "0002_altered" in (await database.check(url))[0]
