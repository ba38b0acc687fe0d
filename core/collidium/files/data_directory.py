"""The data directory: for the account that the platform runs as, whatever its umask lets others read.

What killed processes left in it is swept up by those that come after.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from collidium.errors import ConfigurationError
from collidium.files.durable import write_once
from collidium.files.held import delete_older, sweep

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Below the data directory; the hub and the admin token see to themselves.
PRIVATE = ("truth", "storage", "uploads", "outputs")
#: What runners make there once they are used.
OF_RUNNERS = ("mock-jobs", "container-jobs", "slurm")
#: Records of jobs, with the last lines of their logs; those of the mock runner from when they began.
OF_ENDED_JOBS = ("mock-jobs/*", "container-jobs/ended/*", "local-jobs/ended/*")


def prepare(settings: Settings) -> None:
    """Make what is missing for its owner alone, close to others what they could read, and sweep.

    Files that this process makes from now on are for its owner alone. A data directory that is there keeps
    its mode: it may hold other things, too. Raises ConfigurationError when something of it cannot be had.
    """
    os.umask(0o077)
    try:
        _prepare(settings)
        _sweep(settings)
    except OSError as error:
        raise ConfigurationError(f"the data directory cannot be used: {error}") from error


def _prepare(settings: Settings) -> None:
    make_private(settings.data_dir)
    for name in PRIVATE:
        make_private(settings.data_dir / name)
        _close_to_others(settings.data_dir / name)
    make_private(partial_uploads(settings))
    for directory in filter(Path.is_dir, (settings.data_dir / name for name in OF_RUNNERS)):
        _close_to_others(directory)
    make_database_file(settings)


def make_database_file(settings: Settings) -> None:
    """Make the file of an SQLite database when absent, for its owner alone."""
    if path := settings.sqlite_file:
        make_private(path.parent)
        make_private_file(path)
        _close_to_others(path)


def partial_uploads(settings: Settings) -> Path:
    """Where the bytes of uploads lie that come in several requests."""
    return settings.uploads / "partial"


def metrics_directory(settings: Settings) -> Path:
    """Where server processes that share a port count together."""
    return settings.data_dir / "metrics"


def sweep_old(settings: Settings, before: float, uploads_before: float) -> None:
    """Delete what killed processes left, and what ended before a moment, in seconds since 1970.

    That are records of jobs, and uploads that nothing was appended to since ``uploads_before``.
    """
    _sweep(settings)
    delete_older(partial_uploads(settings).glob("*"), uploads_before)
    for pattern in OF_ENDED_JOBS:
        delete_older(settings.data_dir.glob(pattern), before)


def _sweep(settings: Settings) -> None:
    imports = (settings.data_dir / "truth").glob("*/")
    publications = (settings.data_dir / "outputs").glob("*/")
    for directory in (settings.uploads, metrics_directory(settings), *imports, *publications):
        sweep(directory)


def make_private(directory: Path) -> None:
    """Make a directory for its owner alone; one that is there stays as it is."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Make a file for its owner alone when absent. SQLite gives a journal the mode of its database."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def make_secret_file(path: Path, secret: str) -> bool:
    """Write a secret as a line, unless there is a file already; whether it was written."""
    make_private(path.parent)
    return write_once(path, secret + "\n")


def _close_to_others(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & stat.S_IRWXO:
        path.chmod(mode & ~stat.S_IRWXO)
