"""The backend that uses Slurm's commands: sbatch, squeue, sacct, scancel."""

from __future__ import annotations

import asyncio
import os
from asyncio.subprocess import PIPE
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from signal import SIGKILL
from typing import Final

from collidium.contracts.runner import RunnerUnavailable
from collidium.runtime.logs import single_line
from collidium.runtime.subprocesses import signal_group
from collidium_runners.batch.states import submission_error
from collidium_runners.slurm.backend import (
    SACCT_FORMAT,
    SQUEUE_FORMAT,
    ReportedTask,
    SlurmBackend,
    SlurmSubmission,
    sacct_tasks,
    squeue_tasks,
)

#: Variables of the server's environment that sbatch passes to jobs, without secrets.
_HANDED_ON: Final = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "SLURM_CONF")
_ALL_OF_MINE: Final = ("--me", "--states=all", "--noheader", f"--Format={SQUEUE_FORMAT}")
_ACCOUNTED: Final = (
    *("--parsable2", "--noheader", "--allocations", "--starttime=1970-01-01"),
    f"--format={SACCT_FORMAT}",
)
#: Maximum number of ids in a command's argument.
_IDS_AT_ONCE: Final = 5000


class CommandFailed(Exception):
    """A command failed. The message is its error output."""


class CommandBackend(SlurmBackend):
    """Runs Slurm's commands; ``configuration`` is the path of slurm.conf, None for their default."""

    def __init__(self, configuration: Path | None, timeout_seconds: float) -> None:
        self._timeout_seconds = timeout_seconds
        self._environment = environment(os.environ)
        if configuration is not None:
            self._environment["SLURM_CONF"] = str(configuration)

    async def submit(self, submission: SlurmSubmission) -> int:
        try:
            output = await self._run(
                "sbatch", "--parsable", script=submission.script, directory=submission.directory
            )
        except CommandFailed as error:
            raise submission_error(str(error)) from error
        job_id = output.strip().partition(";")[0]  # the cluster's name may follow
        if not job_id.isdecimal():
            raise RunnerUnavailable("sbatch printed no job id") from CommandFailed(single_line(output))
        return int(job_id)

    async def find_jobs(self, name: str) -> list[int]:
        output = await self._query("squeue", *_ALL_OF_MINE, f"--name={name}")
        return sorted({task.job_id for task in squeue_tasks(output) if task.job_name == name})

    async def tasks(self, job_ids: Collection[int]) -> list[ReportedTask]:
        # Without ids: one unknown id makes squeue fail, and thousands do not fit into a command line.
        output = await self._query("squeue", *_ALL_OF_MINE)
        wanted = frozenset(job_ids)
        return await asyncio.to_thread(
            lambda: [task for task in squeue_tasks(output) if task.job_id in wanted]
        )

    async def accounted(self, job_ids: Collection[int]) -> list[ReportedTask]:
        listed = sorted(job_ids)
        tasks: list[ReportedTask] = []
        for first in range(0, len(listed), _IDS_AT_ONCE):
            tasks += await self._accounted(listed[first : first + _IDS_AT_ONCE])
        return tasks

    async def _accounted(self, job_ids: Sequence[int]) -> list[ReportedTask]:
        chosen = f"--jobs={','.join(map(str, job_ids))}"
        try:
            output = await self._run("sacct", *_ACCOUNTED, chosen)
        except CommandFailed as error:
            if "accounting storage is disabled" in str(error):
                return []
            raise RunnerUnavailable("sacct failed") from error
        return list(sacct_tasks(output))

    async def cancel(self, job_id: int) -> None:
        await self._query("scancel", str(job_id))

    async def close(self) -> None:
        """Nothing is open."""

    async def _query(self, program: str, *arguments: str) -> str:
        try:
            return await self._run(program, *arguments)
        except CommandFailed as error:
            raise RunnerUnavailable(f"{program} failed") from error

    async def _run(
        self, program: str, *arguments: str, script: str = "", directory: Path | None = None
    ) -> str:
        """Run a command and return its output. Raises CommandFailed and RunnerUnavailable."""
        try:
            process = await asyncio.create_subprocess_exec(
                *(program, *arguments),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=self._environment,
                cwd=directory,
                process_group=0,
            )
        except OSError as error:
            raise RunnerUnavailable(f"{program} cannot be started: {error.strerror}") from None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                output, errors = await process.communicate(script.encode())
        except TimeoutError:
            raise RunnerUnavailable(f"{program} did not answer within {self._timeout_seconds:g} s") from None
        finally:
            if process.returncode is None:
                # Kill its children, too, as asyncio waits until the pipes are closed.
                signal_group(process.pid, SIGKILL)
                await process.wait()
        if process.returncode != 0:
            raise CommandFailed(single_line(errors.decode(errors="replace")))
        return output.decode(errors="replace")


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for Slurm's commands, which sbatch passes to jobs."""
    return {name: variables[name] for name in _HANDED_ON if name in variables}
