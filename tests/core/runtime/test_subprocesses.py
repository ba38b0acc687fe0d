"""A command is read to its end, and ended with all that it started."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest
from tests.waiting import eventually

from collidium.runtime import subprocesses

#: Opens a pipe in the working directory, shares it with a child, says so, and sleeps as the child does.
SLEEPS = """
import os, time
os.open("pipe", os.O_WRONLY)
if os.fork():
    print(flush=True)
time.sleep(600)
"""


@contextmanager
def watched(directory: Path) -> Iterator[Callable[[], bool]]:
    """Make the pipe; gives whether no process has it open."""
    os.mkfifo(directory / "pipe")
    descriptor = os.open(directory / "pipe", os.O_RDONLY | os.O_NONBLOCK)

    def is_left() -> bool:
        with suppress(BlockingIOError):
            return os.read(descriptor, 1) == b""
        return False

    yield is_left
    os.close(descriptor)


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


def test_a_command_is_run_to_its_end(tmp_path: Path) -> None:
    program = "import os, sys; print(os.getcwd(), os.environ['A']); print('no', file=sys.stderr); sys.exit(3)"
    done = subprocesses.run(python(program), 60, directory=tmp_path, environment={"A": "b"})
    assert (done.returncode, done.stdout, done.stderr) == (3, f"{tmp_path} b\n", "no\n")


def test_a_late_command_is_ended_with_its_children(tmp_path: Path) -> None:
    with watched(tmp_path) as is_left:
        with pytest.raises(subprocess.TimeoutExpired):
            subprocesses.run(python(SLEEPS), 1, directory=tmp_path)
        eventually(is_left)


def test_a_command_that_is_not_there_is_an_oserror(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        subprocesses.run([str(tmp_path / "none")], 60)


@pytest.mark.parametrize("stubborn", [False, True])
def test_ending_a_process_ends_its_session(tmp_path: Path, stubborn: bool) -> None:
    """Whether or not it heeds the request to stop."""
    ignore = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)" if stubborn else ""
    with watched(tmp_path) as is_left:
        process = subprocess.Popen(
            python(ignore + SLEEPS), cwd=tmp_path, stdout=subprocess.PIPE, start_new_session=True
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
            assert not is_left()
            subprocesses.end(process, 0.1 if stubborn else 60)
        assert process.returncode == (-SIGKILL if stubborn else -SIGTERM)
        eventually(is_left)


_SLOW = """
import multiprocessing, os, pathlib, sys, time
if __name__ == "__mp_main__":  # the child imports its main module
    pathlib.Path(sys.argv[1]).write_text(str(os.getpid()))
    time.sleep(600)
if __name__ == "__main__":
    from collidium.runtime.subprocesses import TiedName
    spawn = multiprocessing.get_context("spawn")
    spawn.Process(target=print, name=TiedName("worker")).start()
    time.sleep(600)
"""


def test_a_spawned_process_ends_with_its_parent(tmp_path: Path) -> None:
    """Also while it imports, which takes longest on a busy machine."""
    script, pid = tmp_path / "slow.py", tmp_path / "pid"
    script.write_text(_SLOW)
    with subprocess.Popen([sys.executable, script, pid]) as parent:
        eventually(lambda: pid.exists() and pid.read_text())
        parent.kill()
    eventually(lambda: not Path(f"/proc/{pid.read_text()}").exists())
