"""Writes dumps of a filled database of this release: ``python -m tests.core.database.fill_release``.

Those of releases stay as they are. The first is 0.4.0; a later one gets its own when it is tagged.
"""

from __future__ import annotations

import re
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import httpx
import pyarrow as pa
from tests.core.api.conftest import hits_with_truth, import_truth, operating, parquet, perfect, signed_in
from tests.waiting import eventually

from collidium import __version__
from collidium.testing.databases import Databases, PostgresDatabases, SqliteDatabases
from collidium.testing.postgres import PostgresServer
from collidium.testing.server import ServerProcess

RELEASES: Final = Path(__file__).with_name("releases")
CHALLENGE: Final = "/v1/challenges/spring-2026"


def main() -> None:
    """Write both."""
    with TemporaryDirectory() as name, PostgresServer() as server:
        directory = Path(name)
        write("sqlite", SqliteDatabases(directory), directory / "one")
        write("postgresql", PostgresDatabases(server), directory / "two")


def write(kind: str, databases: Databases, directory: Path) -> None:
    """Fill a database, and write all that is in it as SQL."""
    with databases.migrated() as url:
        with ServerProcess(directory, url, {"PLATFORM_MOCK_SECONDS": "0"}) as server:
            fill(server, perfect(hits_with_truth()))
        if kind == "sqlite":
            with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as database:
                text = "\n".join(database.iterdump())
        else:
            options = ("--inserts", "--no-owner", "--no-privileges")
            text = subprocess.run(
                ("pg_dump", *options, url), check=True, capture_output=True, text=True
            ).stdout
            text = re.sub(r"^\\.*\n", "", text, flags=re.MULTILINE)  # for psql alone
    path = RELEASES / __version__ / f"{kind}.sql"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace(str(directory), "/srv/collidium") + "\n")


def fill(server: ServerProcess, oracle: pa.Table) -> None:
    """Use what has tables of its own."""
    import_truth(server)
    with (
        operating(server) as admin,
        signed_in(server, "alice") as alice,
        signed_in(server, "bob") as bob,
    ):
        kept = done(alice, "/v1/benchmark/tracking/submit", content=parquet(oracle))
        done(bob, "/v1/benchmark/tracking/submit", content=parquet(oracle.slice(0, 1000)))
        order = {"channel": "ttbar", "events": 1, "pileup": 0}
        where = f"/v1/requests/{done(alice, '/v1/simulate', json=order)['request_id']}"
        eventually(lambda: alice.get(where).json()["state"] == "completed")
        done(admin, "/admin/challenges", json={"name": "spring-2026", "task": "tracking", "team_size": 2})
        done(alice, f"{CHALLENGE}/team", json={"name": "Überflieger"})
        code = done(alice, f"{CHALLENGE}/team/invitations", json={})["code"]
        done(bob, f"{CHALLENGE}/join", json={"code": code})
        done(admin, "/admin/challenges/spring-2026/members", json={"hub_usernames": ["alice"]})
        done(bob, f"{CHALLENGE}/submit", content=parquet(oracle.slice(0, 2000)))
        withdrawn = done(alice, f"{CHALLENGE}/submit", content=parquet(oracle.slice(0, 500)))
        done(alice, f"/v1/submissions/{withdrawn['submission_id']}/withdraw")
        done(admin, "/admin/grant", json={"hub_username": "bob", "delta": 5, "reason": "a talk"})
        done(admin, "/admin/ban", json={"hub_username": "mallory", "banned": True})
        done(admin, "/admin/operators", json={"name": "anna", "scopes": ["reports"]})
        rescoring = "/admin/challenges/spring-2026/rescoring"
        done(admin, rescoring, json={"apply": True})
        eventually(lambda: admin.get(rescoring).json()["ended_at"] is not None)
        done(admin, "/admin/freeze?frozen=true")
        assert alice.get(f"/v1/submissions/{kept['submission_id']}").is_success


def done(client: httpx.Client, path: str, **request: object) -> dict[str, str]:
    """The answer to a request that succeeds."""
    answer = client.post(path, **request)
    assert answer.is_success, answer.text
    found: dict[str, str] = answer.json()
    return found


if __name__ == "__main__":
    main()
