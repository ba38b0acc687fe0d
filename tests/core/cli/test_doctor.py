"""``collidium doctor``: each part is tried, and what keeps a second machine away is named."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.full_disk import full_disk
from tests.waiting import eventually
from tortoise.timezone import now

from collidium import __version__, database, plugins, settings, simulations
from collidium.secrets import open_secrets
from collidium.server import doctor
from collidium.server.doctor import Finding, HealthCheck, examine, run_check
from collidium.simulations.models import Follower
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess


def checks(server: ServerProcess, code: int) -> dict[str, dict[str, Any]]:
    done = server.run("doctor", "--json")
    assert done.returncode == code, done.stdout + done.stderr
    return {check["name"]: check for check in json.loads(done.stdout)}


def test_a_laptop_is_well_and_alone(tmp_path: Path) -> None:
    found = checks(ServerProcess(tmp_path), 0)
    assert {name for name, check in found.items() if "several machines" in check["advice"]} == {
        *("secrets", "storage", "hub", "runner", "database")
    }
    assert {name for name, check in found.items() if check["status"] == "ok"} - {"models"} == {
        *("release", "libraries", "data directory", "plugins", "proxy"),
        *("scoring", "clock", "single sign-on", "stored files", "lost scores", "draws for standard errors"),
    }
    assert "collidium worker" in found["processes"]["advice"]
    assert found["models"]["found"].startswith(
        ("are kept from", "models are not", "this machine", "onnxruntime")
    )


@pytest.mark.parametrize("lacks", ["calls", "cgroup"])
async def test_what_confines_no_model_is_named(monkeypatch: pytest.MonkeyPatch, lacks: str) -> None:
    """Without calls no model runs; without a cgroup they do."""
    monkeypatch.setattr(doctor, "is_installed", lambda: True)
    kept = {"calls", "files", "network", "processes", "cgroup"} - {lacks}
    monkeypatch.setattr(doctor, "confinement", lambda: tuple(kept))
    found, advice = await doctor._models(settings.load(), plugins.load())
    assert found.endswith(f"not kept from: {lacks}")
    assert found.startswith("this machine runs no models") == (lacks == "calls")
    assert advice


@pytest.mark.one_database
def test_a_machine_with_another_key_is_found(start_server: StartServer, tmp_path: Path) -> None:
    server = start_server({"PLATFORM_SECRET_KEY": "one"})
    assert checks(server, 0)["processes"]["found"] == "1 of this release, with the same settings"
    server.environment["PLATFORM_SECRET_KEY"] += "-more"
    found = checks(server, 1)["processes"]
    assert found["status"] == "failed"
    assert "another PLATFORM_SECRET_KEY than here: " in found["found"]
    # Servers that leave requests to workers are processes, too; one that starts names the other.
    other = {"PLATFORM_FOLLOW_REQUESTS": "false", "PLATFORM_SECRET_KEY": "another"}
    with ServerProcess(tmp_path, server.environment["PLATFORM_DATABASE_URL"], other) as second:
        assert "another PLATFORM_SECRET_KEY than this process has" in second.log()
        server.stop()
        server.environment.update({"PLATFORM_SECRET_KEY": "one"})
        eventually(lambda: checks(server, 1)["processes"]["status"] == "failed")


async def test_broken_parts_are_named_and_do_not_hide_others(
    migrated_database_url: str, unused_tcp_port: int, tmp_path: Path
) -> None:
    chosen = settings.load(
        data_dir=tmp_path / "data",
        database_url=migrated_database_url,
        hub_url=f"http://127.0.0.1:{unused_tcp_port}",
        storage="lost",
        public_url="https://collidium.example.org",
        secret_key="key",
        admin_token="token",
    )
    key = open_secrets(chosen).fingerprint(chosen)
    async with database.connected(migrated_database_url):
        await Follower.create(process="other:1", looked_at=now(), release="0.1", key=key)
    found: dict[str, HealthCheck] = {check.name: check for check in await examine(chosen, plugins.load())}
    assert {name for name, check in found.items() if check.status == "failed"} == {"hub", "storage"}
    assert "lost" in found["storage"].found
    assert "PLATFORM_TRUSTED_PROXIES" in found["proxy"].advice
    assert str(unused_tcp_port) in found["hub"].found
    assert "PLATFORM_HUB_URL" in found["hub"].advice
    assert (found["processes"].status, found["processes"].found) == ("warning", "other:1 runs 0.1")
    assert __version__ in found["processes"].advice


async def test_a_database_that_only_reads_is_found(migrated_database_url: str) -> None:
    chosen = settings.load(database_url=migrated_database_url)
    check = "database", chosen, plugins.load(), *doctor.PARTS["database"]
    if file := chosen.sqlite_file:
        with closing(sqlite3.connect(file)) as other:
            other.execute("PRAGMA user_version = 1")
            with full_disk(file):
                found = await run_check(*check)
    else:
        async with database.connected(migrated_database_url):
            (name,) = (row["name"] for row in await database.rows_of("SELECT current_database() AS name"))
            await database.rows_of(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        found = await run_check(*check)
    assert found.status == "failed"
    assert ("disk I/O error" if chosen.sqlite_file else "read-only") in found.found


async def test_other_settings_are_named_with_their_processes(
    migrated_database_url: str, tmp_path: Path
) -> None:
    shared = {"database_url": migrated_database_url, "secret_key": "key", "admin_token": "token"}
    chosen = settings.load(data_dir=tmp_path, hub_url="https://hub.example", **shared)
    others = {
        "a:1": {"admin_token": "another"},
        "b:2": {"storage_s3_url": "s3://another"},
        "c:3": {"secret_key": "another", "admin_token": "another"},
    }
    async with database.connected(migrated_database_url):
        for process, other in others.items():
            theirs = settings.load(hub_url="https://hub.example", **(shared | other))
            key = open_secrets(theirs).fingerprint(theirs)
            await Follower.create(process=process, looked_at=now(), release=__version__, key=key)
            # Old ones only write down the secret key in the same way.
            await Follower.create(process=f"old {process}", looked_at=now(), release="0.1", key=key)
        found = await simulations.other_settings(open_secrets(chosen).fingerprint(chosen))
    expected = {"PLATFORM_SECRET_KEY": ["c:3", "old c:3"]}
    if not chosen.sqlite_file:
        expected |= {"ADMIN_TOKEN": ["a:1"], "PLATFORM_STORAGE": ["b:2"]}
    assert found == expected


async def test_links_need_an_address_behind_a_proxy() -> None:
    behind = settings.load(trusted_proxies=1)
    assert "PLATFORM_PUBLIC_URL" in (await doctor._proxy(behind, plugins.load()))[1]
    known = settings.load(trusted_proxies=1, public_url="https://collidium.example.org")
    assert (await doctor._proxy(known, plugins.load()))[1] == ""


async def test_no_password_of_an_address_is_shown() -> None:
    chosen = settings.load(
        database_url="postgres://me:hush%40db@db.example/x",
        hub_url="https://hub.example",
        mail_from="noreply@collidium.example",
        smtp_url="smtp://me:hush%2Bmail@mail.example",
        secret_key="key",
        admin_token="token",
    )

    async def part(chosen: settings.Settings, _: plugins.Plugins) -> Finding:
        raise RuntimeError(f"{chosen.database} and 'hush+mail'")

    check = await run_check("database", chosen, plugins.load(), part, "")
    assert check.found == "postgres://me:********@db.example/x and '********'"
