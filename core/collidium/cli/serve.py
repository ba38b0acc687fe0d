"""Commands of a server: ``collidium serve``, ``worker``, ``db``, ``ledger``, ``backup`` and ``restore``."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collidium.cli.context import on_platform, quiet_settings
from collidium.cli.options import DIRECTORY, EXISTING_DIRECTORY, json_option
from collidium.cli.output import note, print_items, print_json, printable, show_record

if TYPE_CHECKING:
    from collidium.accounts import Mismatch
    from collidium.backup import Backup
    from collidium.platform import Platform
    from collidium.simulations import TotalMismatch


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
    """Run the server until SIGTERM or Ctrl-C; running requests are finished first.

    Prints its address when it is ready. On first start it creates its database and an admin token, and
    prints where the token is.

    \b
    collidium serve
    collidium serve --port 0 --data-dir ./try
    """
    # Until it serves: nothing that is imported is garbage, and looking for it takes a sixth of the start.
    gc.disable()
    from collidium import settings
    from collidium.server.supervisor import run

    given = {"host": host, "port": port, "workers": workers, "data_dir": data_dir and data_dir.absolute()}
    run(settings.load(**{name: value for name, value in given.items() if value is not None}))


@click.command()
@click.option("--data-dir", type=DIRECTORY, help="Directory for all files.")
@click.option(
    "--dask", metavar="ADDRESS", help="Score for the servers that use this scheduler, and only that."
)
def worker(data_dir: Path | None, dask: str | None) -> None:
    """Follow simulation requests and deliver webhooks until SIGTERM or Ctrl-C, without serving.

    Any number of workers and servers share the work, with the same settings and database. With
    PLATFORM_WORKER_PORT it answers /metrics, /healthz and /readyz. With --dask it needs no database, but the
    storage and the plugins of the servers.

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
    """Migrate or check the database's schema."""


@db.command()
def migrate() -> None:
    """Migrate the schema of PLATFORM_DATABASE_URL to this release. Safe to repeat.

    `collidium serve` itself migrates the SQLite file that is used without that setting.

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
def check(ctx: click.Context, as_json: bool) -> None:
    """List problems of the schema; ends with 1 if there are any.

    \b
    collidium db check
    """
    import asyncio

    from collidium import database

    problems = asyncio.run(database.check(quiet_settings().database))
    if as_json:
        print_json({"problems": problems})
    else:
        click.echo("\n".join(map(printable, problems)) or "The database has the schema of this release.")
    ctx.exit(1 if problems else 0)


@click.group()
def ledger() -> None:
    """Audit the credit ledger and the running totals."""


@ledger.command()
@json_option
@click.pass_context
def audit(ctx: click.Context, as_json: bool) -> None:
    """Check every balance and every running total; ends with 1 if one is wrong.

    Balances are compared with their ledger entries, totals of usage with the simulation requests.

    \b
    collidium ledger audit
    """

    async def run(_: Platform) -> tuple[list[Mismatch], list[TotalMismatch]]:
        from collidium import accounts, simulations

        return await accounts.audit(), await simulations.audit()

    balances, totals = on_platform(run)
    if as_json:
        print_json({"mismatches": balances, "totals": totals})
    else:
        _show(balances, totals)
    ctx.exit(1 if balances or totals else 0)


def _show(balances: Sequence[Mismatch], totals: Sequence[TotalMismatch]) -> None:
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
def backup(ctx: click.Context, directory: Path, as_json: bool) -> None:
    """Back up the database and all files to DIRECTORY, which is made; the server may run.

    The directory appears when it is whole, and holds secrets. Files of a storage other than `local` are
    checked, not copied. Ends with 1 if a file that the database names is missing or damaged.

    \b
    collidium backup /backups/2026-11-23
    """
    import asyncio

    from collidium import backup as backups
    from collidium.cli.progress import progress_bar

    with progress_bar("Copying files", sizes=True) as progress:
        made = asyncio.run(backups.make(quiet_settings(), directory.absolute(), progress))
    _show_backup(ctx, made, directory, as_json)


@click.command()
@click.argument("directory", type=EXISTING_DIRECTORY)
@json_option
@click.pass_context
def restore(ctx: click.Context, directory: Path, as_json: bool) -> None:
    """Restore a backup into the data directory and database of the settings, which have to be empty.

    The schema is brought up to this release. Ends with 1 if a file that the database names is missing.

    \b
    PLATFORM_DATA_DIR=./restored collidium restore /backups/2026-11-23
    """
    import asyncio

    from collidium import backup as backups
    from collidium.cli.progress import progress_bar

    with progress_bar("Copying files", sizes=True) as progress:
        restored = asyncio.run(backups.restore(quiet_settings(), directory.absolute(), progress))
    _show_backup(ctx, restored, directory, as_json)


def _show_backup(ctx: click.Context, backup: Backup, directory: Path, as_json: bool) -> None:
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
    show_record(shown, shown | {"missing": len(backup.missing)}, as_json=as_json)
    for path in backup.missing if not as_json else ():
        note(f"missing or damaged: {path}")
    ctx.exit(1 if backup.missing else 0)
