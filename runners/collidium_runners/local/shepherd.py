"""The supervisor of one job: ``python -m collidium_runners.local.shepherd FOLDER``.

It exists because only a parent gets the exit code of a process, and it must outlive the server. It starts the
pipeline once, copies its output to a log of limited size, kills all processes of the job when the pipeline
ends or on SIGTERM, and records the exit code. The command returns as soon as the shepherd has started.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from collidium.files.held import lock
from collidium.runtime.subprocesses import prctl, signal_group
from collidium_runners.local.processes import JobProcess
from collidium_runners.local.records import EndRecord, FolderLog, FolderRecord, JobSpecification, StartRecord

#: Seconds between SIGTERM and SIGKILL.
STOP_SECONDS: Final = 2.0
#: Seconds that another shepherd of the job may take to start.
BEGIN_SECONDS: Final = 20.0
#: Seconds between two attempts to record the end of the pipeline.
RETRY_SECONDS: Final = 5.0

_NOT_FOUND: Final = 127
_NOT_EXECUTABLE: Final = 126
_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36


def main(folder: Path) -> int:
    """Start a shepherd unless the job has had one; return 0 once one has started, else 1."""
    os.umask(0o077)
    record = FolderRecord(folder)
    if not _lock(record.lock):
        return _wait_for_the_other(record)
    if record.started:
        return 0
    began, begin = os.pipe()
    if os.fork():
        os.close(begin)
        return 0 if os.read(began, 1) else 1
    os.close(began)
    os.setsid()
    _watch(record, begin)
    return 0


def _lock(file: Path) -> bool:
    """Lock the file until this process and its fork have ended; return False if it is locked already."""
    return lock(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


def _wait_for_the_other(record: FolderRecord) -> int:
    deadline = time.monotonic() + BEGIN_SECONDS
    while not record.started:
        if time.monotonic() > deadline:
            return 1
        time.sleep(0.01)
    return 0


def _watch(record: FolderRecord, begin: int) -> None:
    specification, itself = record.specification, JobProcess.of(os.getpid())
    if specification is None or itself is None:
        raise RuntimeError(f"{record.folder} has no job")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    # Orphans of the job become children of this process, so that it can kill them.
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    processes = JobProcesses(itself)
    signal.signal(signal.SIGTERM, lambda *_: processes.stop())
    record.write(StartRecord(itself, time.time()))
    os.write(begin, b"1")
    os.close(begin)
    ended = EndRecord(processes.run(specification, FolderLog(record.folder)), time.time())
    while not _wrote(record, ended):
        # Retry, as no other process knows the exit code.
        time.sleep(RETRY_SECONDS)


def _wrote(record: FolderRecord, ended: EndRecord) -> bool:
    try:
        record.write(ended)
    except FileNotFoundError:
        return True  # the folder was removed, so the record is not needed
    except OSError:  # a full disk
        return False
    return True


class JobProcesses:
    """The processes of the job."""

    def __init__(self, shepherd: JobProcess) -> None:
        self._shepherd = shepherd
        self._stopped = False
        self._pipeline: subprocess.Popen[bytes] | None = None

    def run(self, specification: JobSpecification, log: FolderLog) -> int:
        """Run the pipeline to its end; return its exit code, or 128 plus the number of a signal."""
        if self._stopped:
            return 128 + signal.SIGTERM
        try:
            self._pipeline = pipeline = subprocess.Popen(  # noqa: S603 -- a list of words, never a shell
                specification.words,
                env=specification.environment,
                cwd=specification.directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                process_group=0,
                preexec_fn=lambda: _confine(specification),  # noqa: PLW1509 -- this process has one thread
            )
        except (OSError, subprocess.SubprocessError) as error:
            log.write(f"{specification.words[0]}: {error}\n".encode())
            return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        if self._stopped:
            self.stop()
        assert pipeline.stdout is not None  # noqa: S101 -- a pipe, see above
        copying = threading.Thread(target=log.copy, args=(pipeline.stdout,), daemon=True)
        copying.start()
        code = pipeline.wait()
        self._kill_descendants()
        copying.join(STOP_SECONDS)
        return code if code >= 0 else 128 - code

    def stop(self) -> None:
        """Send SIGTERM to the pipeline, and after a while SIGKILL to all descendants."""
        self._stopped = True
        if self._pipeline is not None:
            signal_group(self._pipeline.pid, signal.SIGTERM)
            force = threading.Timer(STOP_SECONDS, self._kill)
            force.daemon = True
            force.start()

    def _kill(self) -> None:
        for process in self._shepherd.descendants():
            process.signal(signal.SIGKILL)

    def _kill_descendants(self) -> None:
        """Kill until there is no child left: orphans become children of this process."""
        with suppress(ChildProcessError):  # none is left
            while True:
                self._kill()
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
                time.sleep(0.005)


def _confine(specification: JobSpecification) -> None:
    """Set limits in the pipeline's process before it executes the command."""
    os.nice(specification.niceness)
    if specification.memory_bytes:
        # Not the address space, which may be much larger than the memory in use.
        resource.setrlimit(resource.RLIMIT_DATA, (specification.memory_bytes, specification.memory_bytes))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
