"""Commands of a server: ``collidium serve``, ``worker``, ``db``, ``ledger``, ``backup`` and ``restore``."""

from __future__ import annotations

import gc
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collidium.cli.context import on_platform, quiet_settings
from collidium.cli.options import DIRECTORY, EXISTING_DIRECTORY, json_option
from collidium.cli.output import json_wanted, note, print_items, printable, show_record, show_value

if TYPE_CHECKING:
    from collidium.accounts import Mismatch
    from collidium.backup import Backup
    from collidium.platform import Platform
    from collidium.runtime.progress import Progress
    from collidium.settings import Settings
    from collidium.simulations import TotalMismatch

    #: Makes or restores a backup in a directory.
    Copy = Callable[[Settings, Path, Progress | None], Coroutine[Any, Any, Backup]]


@click.command()
@click.option("--host", help="Address to listen on; default: PLATFORM_HOST, else 127.0.0.1.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    help="Port; 0 takes a free one. Default: PLATFORM_PORT, else 8000.",
)
@click.option("--workers", type=click.IntRange(1, 64), help="Processes that share the port.")
@click.option("--data-dir", type=DIRECTORY, help="Directory for all files.")
def serve(host: str | None, port: int | None, workers: int | None, data_dir: Path | None) -> None:
    """Run the server until SIGTERM or Ctrl-C, then finish open HTTP requests.

    Prints its address when it is ready. The first start creates a database and an admin token, and prints
    the file of the token.

    \b
    collidium serve
    collidium serve --port 0 --data-dir ./try
    """
    # Enabled again when the server serves. Until then there is no garbage, and collection takes a sixth of
    # the start-up time.
    gc.disable()
    from collidium import settings
    from collidium.server.supervisor import run

    given = {"host": host, "port": port, "workers": workers, "data_dir": data_dir and data_dir.absolute()}
    run(settings.load(**{name: value for name, value in given.items() if value is not None}))


@click.command()
@click.option("--data-dir", type=DIRECTORY, help="Directory for all files.")
@click.option("--dask", metavar="ADDRESS", help="Only score, for the servers that use this Dask scheduler.")
def worker(data_dir: Path | None, dask: str | None) -> None:
    """Follow simulation requests and deliver webhooks until SIGTERM or Ctrl-C.

    Any number of workers and servers with the same settings and database share the work. With
    PLATFORM_WORKER_PORT, the worker serves /metrics, /healthz and /readyz. With --dask, it needs the storage
    and plugins of the servers, but no database.

    \b
    collidium worker
    PLATFORM_DATABASE_URL=postgres://collidium@db/collidium collidium worker
    collidium worker --dask tls://dask.example.org:8786
    """
    from collidium import settings
    from collidium.server.supervisor import run_worker
    from collidium.server.worker import score

    given: dict[str, Any] = {} if data_dir is None else {"data_dir": data_dir.absolute()}
    if dask is not None:
        score(settings.load(executor="dask", dask_scheduler=dask, **given))
        return
    run_worker(settings.load(**given), click.echo)


@click.group()
def db() -> None:
    """Migrate or check the schema of the database."""


@db.command()
def migrate() -> None:
    """Migrate the schema of PLATFORM_DATABASE_URL to this release. Safe to repeat.

    Without that setting, `collidium serve` migrates its SQLite file itself.

    \b
    collidium db migrate
    """
    import asyncio

    from collidium import database

    asyncio.run(database.migrate(quiet_settings().database))
    note("The database has the schema of this release.")


@db.command()
@json_option
@click.pass_context
def check(ctx: click.Context) -> None:
    """List problems of the schema; exits with 1 if there are any.

    \b
    collidium db check
    """
    import asyncio

    from collidium import database

    problems = asyncio.run(database.check(quiet_settings().database))
    text = "\n".join(map(printable, problems)) or "The database has the schema of this release."
    show_value({"problems": problems}, lambda _: click.echo(text))
    ctx.exit(1 if problems else 0)


@click.group()
def ledger() -> None:
    """Audit the credit ledger and the running totals."""


@ledger.command()
@json_option
@click.pass_context
def audit(ctx: click.Context) -> None:
    """Check all balances and running totals; exits with 1 if one is wrong.

    Balances are compared with their ledger entries, totals of usage with the simulation requests.

    \b
    collidium ledger audit
    """

    async def run(_: Platform) -> tuple[list[Mismatch], list[TotalMismatch]]:
        from collidium import accounts, simulations

        return await accounts.audit(), await simulations.audit()

    balances, totals = on_platform(run)
    show_value({"mismatches": balances, "totals": totals}, lambda _: _print_audit(balances, totals))
    ctx.exit(1 if balances or totals else 0)


def _print_audit(balances: Sequence[Mismatch], totals: Sequence[TotalMismatch]) -> None:
    if balances:
        columns = {"account": "hub_username", "balance": "balance", "sum of entries": "entries_sum"}
        print_items(balances, columns)
    else:
        click.echo("Every balance is the sum of its entries.")
    if totals:
        print_items(totals, {"total": "total", "stored": "kept", "recomputed": "counted"})
    else:
        click.echo("Every running total is the sum of its requests.")


@click.command()
@click.argument("directory", type=DIRECTORY)
@json_option
@click.pass_context
def backup(ctx: click.Context, directory: Path) -> None:
    """Back up the database and all files to the new DIRECTORY; the server may be running.

    The directory appears when the backup is complete. It contains secrets. Files of a storage other than
    `local` are checked, not copied. Exits with 1 if a file in the database is missing or damaged.

    \b
    collidium backup /backups/2026-11-23
    """
    from collidium.backup import make

    _copy_backup(ctx, make, directory)


@click.command()
@click.argument("directory", type=EXISTING_DIRECTORY)
@json_option
@click.pass_context
def restore(ctx: click.Context, directory: Path) -> None:
    """Restore a backup into the data directory and database of the settings, which must be empty.

    The schema is migrated to this release. Exits with 1 if a file in the database is missing.

    \b
    PLATFORM_DATA_DIR=./restored collidium restore /backups/2026-11-23
    """
    from collidium.backup import restore as restore_backup

    _copy_backup(ctx, restore_backup, directory)


def _copy_backup(ctx: click.Context, copy: Copy, directory: Path) -> None:
    """Make or restore a backup, and show it."""
    import asyncio

    from collidium.cli.progress import progress_bar

    with progress_bar("Copying files", sizes=True) as progress:
        backup = asyncio.run(copy(quiet_settings(), directory.absolute(), progress))
    size = sum(file.bytes for file in backup.files.values())
    shown = {
        "directory": str(directory),
        "made_at": backup.made_at,
        "release": backup.release,
        "database": backup.database,
        "storage": backup.storage,
        "files": len(backup.files),
        "bytes": size,
        "stored_files": backup.keys,
        "missing": list(backup.missing),
    }
    show_record(shown, shown | {"missing": len(backup.missing)})
    for path in backup.missing if not json_wanted() else ():
        note(f"missing or damaged: {path}")
    ctx.exit(1 if backup.missing else 0)
