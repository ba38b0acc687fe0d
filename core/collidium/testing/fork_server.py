"""Starts ``python -m collidium`` and scripts by forking a process that has imported the platform (Linux).

Imports take most of the time to start a server. A forked process has its own environment, working directory
and output, and runs a module or a script as ``__main__``. Its parent has only imported modules, and has run
nothing of the platform.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NoReturn

from collidium.overrides.python import finish_threads_and_exit_functions
from collidium.testing.processes import end_with_parent

#: Prefixes of environment variables that are read when the interpreter or a library starts.
_READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC_", "OMP_", "OPENBLAS_", "ARROW_", "TZ")
_MESSAGE_BYTES = 1 << 20


class ForkedProcess:
    """A forked process, with the interface of ``subprocess.Popen``."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid = pid
        self._server = server
        self._pidfd = os.pidfd_open(pid)
        self._code: int | None = None
        self._reaping = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code; None if the process is running."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self._code

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the process to end. Raises subprocess.TimeoutExpired."""
        with self._reaping:
            if self._code is None:
                poll = select.poll()
                poll.register(self._pidfd, select.POLLIN)
                if not poll.poll(None if timeout is None else timeout * 1000):
                    raise subprocess.TimeoutExpired("collidium", timeout or 0)
                self._code = self._server.reap(self.pid)
                os.close(self._pidfd)
        return self._code

    def send_signal(self, sig: int) -> None:
        """Send a signal if the process is running."""
        if self.poll() is None:
            os.kill(self.pid, sig)


class ForkServer:
    """The process that forks, and the connection to it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "collidium.testing.fork_server", str(other.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                start_new_session=True,
            )
        atexit.register(self.close)

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        directory: Path,
        output: IO[bytes],
        errors: IO[bytes],
        program: str = "collidium",
    ) -> ForkedProcess | None:
        """Start a module (as with ``-m``) or a script in a new session.

        Returns None if the environment requires a new interpreter.
        """
        asked = {
            "program": program,
            "arguments": list(arguments),
            "environment": dict(environment),
            "directory": str(directory),
        }
        pid = self._ask(asked, [output.fileno(), errors.fileno()])
        return ForkedProcess(self, pid) if pid else None

    def reap(self, pid: int) -> int:
        """Return the exit code of a process that has ended."""
        return self._ask({"reap": pid}, [])

    def close(self) -> None:
        """End the process and all processes that it has forked."""
        self._connection.close()
        self._process.wait()

    def _ask(self, asked: Mapping[str, Any], files: list[int]) -> int:
        with self._lock:
            socket.send_fds(self._connection, [json.dumps(asked).encode()], files)
            answered = self._connection.recv(_MESSAGE_BYTES)
        if not answered:
            raise RuntimeError("the fork server has ended; its errors are above")
        return int(answered)


@cache
def fork_server() -> ForkServer:
    """The fork server of this process."""
    return ForkServer()


def _serve(connection: socket.socket) -> None:
    """Fork and reap until the connection is closed. The kernel then ends forked processes."""
    _import()
    while True:
        message, files, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, 2)
        if not message:
            return
        asked = json.loads(message)
        if "reap" in asked:
            _, status = os.waitpid(asked["reap"], 0)
            connection.send(b"%d" % os.waitstatus_to_exitcode(status))
            continue
        if not _fits(asked["environment"]):
            connection.send(b"0")
        elif _fork() == 0:
            _become(connection)
            _run(asked, files)
        for file in files:
            os.close(file)


def _fits(environment: Mapping[str, str]) -> bool:
    """Whether a new interpreter with this environment would be equal to this one, except for its path."""
    if _read_at_start(environment) != _read_at_start(os.environ):
        return False
    names = {path.name.partition(".")[0] for folder in _path(environment) for path in folder.glob("*")}
    return not names & {*sys.modules, "sitecustomize", "usercustomize"}


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(_READ_AT_START) and name != "PYTHONPATH"
    }


def _path(environment: Mapping[str, str]) -> list[Path]:
    """Folders of PYTHONPATH that are not on the path of this interpreter."""
    folders = environment.get("PYTHONPATH", "").split(os.pathsep)
    return [Path(folder) for folder in folders if folder and folder not in sys.path[1:]]


def _fork() -> int:
    with warnings.catch_warnings():
        # The only other threads are those of numpy and pyarrow, which support forking.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _become(connection: socket.socket) -> None:
    """Become a session leader before the caller gets the process id, which it may kill as a group at once."""
    os.setsid()
    end_with_parent()
    connection.send(b"%d" % os.getpid())
    connection.close()


def _import() -> None:
    """Import all modules of the platform and of its plugins."""
    plugins = {point.module.partition(".")[0] for point in entry_points(group="collidium")}
    for root in ("collidium", *plugins):
        with suppress(Exception):  # raised again in the process that needs the module
            _import_all(importlib.import_module(root))
    with suppress(ImportError):
        importlib.import_module("pandas")  # pyarrow imports it if it is installed
    if "huggingface_hub" in sys.modules:
        raise RuntimeError("huggingface_hub reads its variables when it is imported: too early here")
    gc.collect()
    gc.freeze()


def _import_all(package: ModuleType) -> None:
    for module in pkgutil.iter_modules(getattr(package, "__path__", ()), f"{package.__name__}."):
        if module.name != "collidium.testing" and not module.name.endswith("__main__"):
            with suppress(Exception):  # as above
                _import_all(importlib.import_module(module.name))


def _run(asked: Mapping[str, Any], files: Sequence[int]) -> NoReturn:
    code: object = 1
    try:
        # The working directory comes first, as with ``-m``.
        sys.path[:1] = [asked["directory"], *map(str, _path(asked["environment"]))]
        os.chdir(asked["directory"])
        os.environ.clear()
        os.environ.update(asked["environment"])
        for number, file in enumerate(files, 1):
            os.dup2(file, number)
            os.close(file)
        # With the interpreter's own options.
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 -- open as long as the process
        sys.stderr = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 -- open as long as the process
        program = asked["program"]
        sys.argv = [program, *asked["arguments"]]
        if program.endswith(".py"):
            runpy.run_path(program, run_name="__main__")
        else:
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:  # shown, as an interpreter does
        sys.excepthook(type(error), error, error.__traceback__)
    _end(code)


def _end(code: object) -> NoReturn:
    """End as an interpreter does, except for the clean-up of modules, which takes 0.1 s."""
    if code is None:
        code = 0
    elif not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    finish_threads_and_exit_functions()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _serve(socket.socket(fileno=int(sys.argv[1])))
