"""A small batch system: runs the array tasks of scripts on this machine, a few at once."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from collidium.testing.processes import ending_with_parent

_OPTION: Final = re.compile(r"#SBATCH\s+--(?P<name>[a-z-]+)(?:=(?P<value>\S*))?\s*")
#: How long a task that was cancelled may take to end before it is killed.
_KILL_SECONDS: Final = 5
_WAITING: Final = "PENDING"
_ACTIVE: Final = frozenset({_WAITING, "RUNNING", "COMPLETING"})


class NotSubmitted(Exception):
    """What sbatch says to a script that it does not take."""


@dataclass(slots=True)
class Task:
    """An array task."""

    index: int
    state: str = _WAITING
    exit_code: int = 0
    began: float | None = None
    ended: float | None = None
    reason: str = "None"
    process: subprocess.Popen[bytes] | None = None

    @property
    def elapsed(self) -> int:
        """Whole seconds so far, as Slurm's accounting counts."""
        return 0 if self.began is None else int((self.ended or time.time()) - self.began)

    @property
    def active(self) -> bool:
        return self.state in _ACTIVE


@dataclass(slots=True)
class Job:
    """An array job."""

    id: int
    name: str
    options: dict[str, str] = field(default_factory=dict)
    tasks: list[Task] = field(default_factory=list)
    submitted: float = field(default_factory=time.time)


class BatchSystem:
    """Jobs by id, and the few at once that run; scripts are kept below ``directory``."""

    def __init__(self, directory: Path, accounts: frozenset[str], slots: int = 2) -> None:
        self.lock = threading.RLock()
        self.jobs: dict[int, Job] = {}
        self.accounts = accounts
        #: What sbatch says to every script, if anything.
        self.refusal = ""
        self._directory = directory
        self._ids = itertools.count(33_821_565)
        self._workers = ThreadPoolExecutor(slots, "batch")
        self._closed = False

    def submit(self, script: str) -> Job:
        """As sbatch does; raises NotSubmitted."""
        if not script.startswith("#!"):
            raise NotSubmitted("sbatch: error: This does not look like a batch script.")
        if self.refusal:
            raise NotSubmitted(self.refusal)
        options = _options(script)
        if options.get("account") not in self.accounts:
            raise NotSubmitted(
                "sbatch: error: Batch job submission failed: "
                "Invalid account or account/partition combination specified"
            )
        first, _, last = options.get("array", "0-0").partition("-")
        count = int(last or first) + 1
        job = self.add(options.get("job-name", "sbatch"), count, options)
        path = self._directory / f"{job.id}.sh"
        path.write_text(script)
        for task in job.tasks:
            self._workers.submit(self._run, job, task, path)
        return job

    def add(self, name: str, tasks: int = 1, options: dict[str, str] | None = None) -> Job:
        """A job that only has states: nothing runs."""
        with self.lock:
            job = Job(next(self._ids), name, options or {}, [Task(index) for index in range(tasks)])
            self.jobs[job.id] = job
        return job

    def cancel(self, job: Job) -> None:
        """As scancel does: what waits never starts, what runs is sent a signal to end."""
        with self.lock:
            for task in job.tasks:
                if task.active:
                    task.state, task.reason = f"CANCELLED by {os.getuid()}", "None"
                    if task.process is None:
                        task.ended = time.time()
                    else:
                        _signal(task.process, signal.SIGTERM)

    def close(self) -> None:
        """End everything that runs."""
        with self.lock:
            self._closed = True
            for job in self.jobs.values():
                for task in job.tasks:
                    if task.process is not None:
                        _signal(task.process, signal.SIGKILL)
        self._workers.shutdown(cancel_futures=True)

    def _run(self, job: Job, task: Task, script: Path) -> None:
        with self.lock:
            if task.state != _WAITING or self._closed:
                return
            task.state, task.began = "RUNNING", time.time()
            task.process = self._start(job, task, script)
        code = _wait(task)
        with self.lock:
            task.process, task.exit_code, task.ended = None, max(code, 0), time.time()
            if task.state == "RUNNING":
                task.state = "FAILED" if code else "COMPLETED"
                task.reason = "NonZeroExitCode" if code else "None"

    def _start(self, job: Job, task: Task, script: Path) -> subprocess.Popen[bytes]:
        variables = {
            "SLURM_JOB_ID": str(job.id),
            "SLURM_JOB_NAME": job.name,
            "SLURM_ARRAY_JOB_ID": str(job.id),
            "SLURM_ARRAY_TASK_ID": str(task.index),
            "SLURM_ARRAY_TASK_COUNT": str(len(job.tasks)),
        }
        return subprocess.Popen(
            ending_with_parent(["/bin/bash", str(script)]),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._directory,
            env=os.environ | variables,
            start_new_session=True,
        )


def _options(script: str) -> dict[str, str]:
    """Of the lines ``#SBATCH`` before the first command."""
    options = {}
    for line in script.splitlines()[1:]:
        if line.strip() and not line.startswith("#"):
            break
        if match := _OPTION.fullmatch(line):
            options[match["name"]] = match["value"] or ""
    return options


def _wait(task: Task) -> int:
    """The exit code; what was cancelled and goes on is killed."""
    process = task.process
    assert process is not None
    cancelled = None
    while True:
        try:
            return process.wait(0.05)
        except subprocess.TimeoutExpired:
            if not task.active:
                cancelled = cancelled or time.monotonic()
                if time.monotonic() > cancelled + _KILL_SECONDS:
                    _signal(process, signal.SIGKILL)


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)
