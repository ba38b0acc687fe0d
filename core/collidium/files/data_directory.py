"""The data directory: private to the platform's account, and cleaned of what killed processes left."""

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

#: Private directories below the data directory, in addition to those that the hub and the admin token create.
PRIVATE = ("truth", "sketches", "storage", "uploads", "outputs")
#: Directories that runners create.
OF_RUNNERS = ("mock-jobs", "container-jobs", "slurm")
#: Records of jobs with the ends of their logs; the mock runner writes its own when a job begins.
OF_ENDED_JOBS = ("mock-jobs/*", "container-jobs/ended/*", "local-jobs/ended/*")


def prepare(settings: Settings) -> None:
    """Create missing directories, make existing ones private, and sweep.

    Sets the umask, so that files of this process are private. An existing data directory keeps its mode, as
    it may have other content. Raises ConfigurationError.
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
    """Create the file of an SQLite database if absent, and make it private."""
    if path := settings.sqlite_file:
        make_private(path.parent)
        make_private_file(path)
        _close_to_others(path)


def partial_uploads(settings: Settings) -> Path:
    """Return the directory of uploads in several requests."""
    return settings.uploads / "partial"


def metrics_directory(settings: Settings) -> Path:
    """Return the directory in which the workers of a server share their metrics."""
    return settings.data_dir / "metrics"


def sweep_old(settings: Settings, before: float, uploads_before: float) -> None:
    """Delete what killed processes left, and old files; times are in seconds since 1970.

    Old files are records of jobs that ended before ``before``, and uploads without additions since
    ``uploads_before``.
    """
    _sweep(settings)
    delete_older(partial_uploads(settings).glob("*"), uploads_before)
    for pattern in OF_ENDED_JOBS:
        delete_older(settings.data_dir.glob(pattern), before)


def _sweep(settings: Settings) -> None:
    imports = (settings.data_dir / "truth").glob("*/")
    publications = (settings.data_dir / "outputs").glob("*/")
    sketches = settings.data_dir / "sketches"
    for directory in (settings.uploads, metrics_directory(settings), sketches, *imports, *publications):
        sweep(directory)


def make_private(directory: Path) -> None:
    """Create a private directory; an existing one stays as it is."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Create a private file if absent. SQLite gives a journal the mode of its database."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def make_secret_file(path: Path, secret: str) -> bool:
    """Write a secret and a line end unless the file exists; return whether it was written."""
    make_private(path.parent)
    return write_once(path, secret + "\n")


def _close_to_others(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & stat.S_IRWXO:
        path.chmod(mode & ~stat.S_IRWXO)
