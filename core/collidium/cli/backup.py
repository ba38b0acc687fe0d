"""``collidium backup`` and ``restore``: all that a server keeps, as one directory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from collidium.cli.context import quiet_settings
from collidium.cli.options import DIRECTORY, EXISTING_DIRECTORY, json_option
from collidium.cli.output import note, show_record
from collidium.cli.progress import progress_bar

if TYPE_CHECKING:
    from collidium.backup import Backup


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
    from collidium import backup as backups

    with progress_bar("Copying files", sizes=True) as progress:
        made = asyncio.run(backups.make(quiet_settings(), directory.absolute(), progress))
    _show(ctx, made, directory, as_json)


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
    from collidium import backup as backups

    with progress_bar("Copying files", sizes=True) as progress:
        restored = asyncio.run(backups.restore(quiet_settings(), directory.absolute(), progress))
    _show(ctx, restored, directory, as_json)


def _show(ctx: click.Context, backup: Backup, directory: Path, as_json: bool) -> None:
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
