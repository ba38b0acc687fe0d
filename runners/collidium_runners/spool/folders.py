"""The folders that jobs write to. Everything here blocks on the disk.

::

    output/<request_id>/0/   the job's output; what is left of a completed job
    scratch/<request_id>/    for what it needs in between
"""

from __future__ import annotations

import shutil
from pathlib import Path

from collidium_runners.pipeline.outputs import gather, has_tables


class JobFolders:
    """The folders of all jobs, below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def make(self, request_id: str) -> tuple[Path, Path]:
        """The folders for output and scratch, made if need be, for this account alone."""
        folders = self._part(request_id), self._scratch(request_id)
        for folder in folders:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folders

    def unmounted(self, request_id: str) -> Path:
        """A folder of the job that a container does not see, made if need be."""
        folder = self._output(request_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder

    def has_tables(self, request_id: str) -> bool:
        """Whether there is any output; a link is none: it could lead to any file of the server."""
        return has_tables(self._output(request_id), 0)

    def collect(self, request_id: str, directory: Path, max_bytes: int) -> list[Path]:
        """Put the tables below ``directory``; raises RunnerRefused when they are gone or too large."""
        return gather(self._output(request_id), 1, directory, max_bytes)

    def clear(self, request_id: str, *, keep_output: bool) -> None:
        """Delete what a job leaves, all or all but its output."""
        shutil.rmtree(self._scratch(request_id), ignore_errors=True)
        if not keep_output:
            shutil.rmtree(self._output(request_id), ignore_errors=True)

    def with_output(self) -> list[str]:
        """The request ids of all jobs that have output here."""
        return [folder.name for folder in (self._directory / "output").glob("*")]

    def _output(self, request_id: str) -> Path:
        return self._directory / "output" / request_id

    def _part(self, request_id: str) -> Path:
        return self._output(request_id) / "0"

    def _scratch(self, request_id: str) -> Path:
        return self._directory / "scratch" / request_id
