"""A worker of the executor ``processes`` and its supervisor; a script that the server never imports.

The worker reads calls from a socket and sends answers, one frame each: eight bytes of length, then a pickle
from the server, or msgpack from the worker, which the server does not trust. The worker imports only what
the pickled function and item need. The supervisor forks it, and ends it with all of its descendants when the
worker ends, when the server closes its end of the socket or ends, and when the processes of a call exceed its
memory limit. A memory cgroup enforces the limit if the server can create one; otherwise the supervisor polls.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from msgspec import msgpack

from collidium.runtime.confinement import drop_capabilities, has_run_out, kill, limit_cgroup, make_cgroup
from collidium.runtime.subprocesses import end_with_parent, prctl

LENGTH: Final = struct.Struct("<Q")
#: The supervisor ends with this signal after a call that exceeded its memory limit.
OVER_MEMORY: Final = signal.SIGUSR1

_PR_SET_CHILD_SUBREAPER: Final = 36
_CAP_DAC_OVERRIDE: Final = 1
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
#: Lower priority than the server, which stays responsive while all cores score.
_NICENESS: Final = 5
#: Interval of checks of the memory of a call's processes.
_WATCH_SECONDS: Final = 0.1
#: Maximum characters of an error's message and of its traceback, and maximum bytes of its arguments.
_LONGEST_TEXT: Final = 20_000
#: Prefix of the names of cgroups, which end with the supervisor's process id.
_CGROUP: Final = "collidium-scoring-"
#: Added to a call's limit for its cgroup, which also counts pages of the kernel and of files.
_CGROUP_ROOM: Final = 32 * 1024**2
#: Maximum interval of attempts to end processes.
_LONGEST_PAUSE_SECONDS: Final = 0.1


def main() -> None:
    """Fork a worker and supervise it."""
    # Signals to the server's process group do not end them; the end of the server does.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Orphaned descendants of the worker become children of the supervisor, whatever their session.
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    drop_capabilities(_CAP_DAC_OVERRIDE)
    supervisor = os.getpid()
    cgroup = make_cgroup(_CGROUP, supervisor)
    if worker := os.fork():
        _supervise(worker, cgroup)
    else:
        _work(supervisor, cgroup)


# -- the supervisor -------------------------------------------------------------------------------------


def _supervise(worker: int, cgroup: Path | None) -> None:
    """Wait for a reason to end the worker and its descendants; then end as the worker did."""
    server = select.poll()
    server.register(0, 0)  # reports only that the server's end is closed
    code = 0
    while not server.poll(_WATCH_SECONDS * 1000):
        ended, status = os.waitpid(worker, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            break
        if cgroup is None and _is_over_memory(worker):
            code = -OVER_MEMORY
            break
        if cgroup is not None and has_run_out(cgroup):
            break
    if cgroup is not None and has_run_out(cgroup):
        code = -OVER_MEMORY
    _end_all(worker)
    if cgroup is not None:
        with contextlib.suppress(OSError):
            cgroup.rmdir()
    if code < 0:
        with contextlib.suppress(OSError):  # SIGKILL has no handler to reset
            signal.signal(-code, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.kill(os.getpid(), -code)
    os._exit(code)


def _end_all(worker: int) -> None:
    """Kill the worker and its descendants until none is left."""
    pause = 0.001
    with contextlib.suppress(ChildProcessError):  # no child is left
        while True:
            if sys.platform == "linux":
                for process in _descendants(os.getpid()):
                    kill(process)
            else:  # does not find processes in other groups
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(worker, signal.SIGKILL)
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


def _descendants(ancestor: int) -> list[int]:
    """The descendants of a process, parents first."""
    found = [ancestor]
    for process in found:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the process has ended
            for thread in Path(f"/proc/{process}/task").iterdir():
                found += map(int, (thread / "children").read_text().split())
    return found[1:]


def _is_over_memory(worker: int) -> bool:
    """Whether the processes of a call together exceed its limit."""
    if sys.platform != "linux":
        return False
    limit = resource.prlimit(worker, resource.RLIMIT_DATA)[0]
    if limit == resource.RLIM_INFINITY:
        return False
    # Needed even for a single process: the kernel's limit does not count memory that could be shared.
    processes = _descendants(os.getpid())
    # The first file is cheap to read, but counts pages shared by forks for each process. The second does not.
    return all(
        sum(_bytes(process, file, names) for process in processes) > limit
        for file, names in (
            ("status", ("RssAnon:", "RssShmem:", "VmSwap:")),
            ("smaps_rollup", ("Pss_Anon:", "Pss_Shmem:", "SwapPss:")),
        )
    )


def _bytes(process: int, file: str, names: tuple[str, ...]) -> int:
    """The sum of some lines of a file in /proc, given in KiB; 0 if the process has ended."""
    try:
        lines = Path(f"/proc/{process}/{file}").read_text(errors="replace").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(names))


# -- the worker -----------------------------------------------------------------------------------------


def _work(supervisor: int, cgroup: Path | None) -> None:
    """Serve calls until the server closes its end of the socket."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # Output of tasks goes to the server's log, not to the socket; their standard input is empty.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    _become_worker(supervisor)
    if cgroup is not None:
        (cgroup / "cgroup.procs").write_text(str(os.getpid()))
    with contextlib.suppress(EOFError, ConnectionError):
        sys.path[:] = read_frame(requests)
        write_frame(answers, "ready")
        while True:
            _serve(requests, answers, cgroup)


def _serve(requests: BinaryIO, answers: BinaryIO, cgroup: Path | None) -> None:
    """Run a call: answers ``started`` when its code is imported, then the outcome."""
    worker = os.getpid()
    size = LENGTH.unpack(_exactly(requests, LENGTH.size))[0]
    data = _exactly(requests, size)
    try:
        paths, call = pickle.loads(data)  # noqa: S301 -- from the server, over our own socket
        function, item, memory_bytes = _Unpickler(call, paths).load()
    except Exception as error:  # importing a third-party task may raise anything
        write_frame(answers, "started")
        answer = "raised", *_encoded(_portable(error))
    else:
        write_frame(answers, "started")
        _limit_memory(memory_bytes)
        if cgroup is not None:
            limit_cgroup(cgroup, memory_bytes + _CGROUP_ROOM)
        answer = _call(function, item)
        _limit_memory(resource.RLIM_INFINITY)
    if os.getpid() != worker:
        os._exit(0)  # in a child that the function forked
    write_frame(answers, (*answer, _has_children()))


class _Unpickler(pickle.Unpickler):
    """Unpickles a call, which has indices instead of the paths of files."""

    def __init__(self, call: bytes, paths: Sequence[str]) -> None:
        super().__init__(io.BytesIO(call))
        self._paths = paths

    def persistent_load(self, number: int) -> Path:
        return Path(self._paths[number])


def _has_children() -> bool:
    """Reap ended children, and return whether others still run."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _call(function: Callable[[Any], Any], item: Any) -> tuple[str, bytes, list[bytes]]:
    try:
        return "returned", *_encoded(function(item))
    except MemoryError:
        return "memory", b"", []
    except Exception as error:  # raised again by the caller
        return "raised", *_encoded(_portable(error))


def _encoded(value: Any) -> tuple[bytes, list[bytes]]:
    """Encode a value as msgpack, with its opaque parts separate."""
    opaque: list[bytes] = []

    def plain(part: Any) -> Any:
        if isinstance(part, bytes):  # a subclass: Opaque
            opaque.append(bytes(part))
            return len(opaque) - 1
        return os.fspath(part) if isinstance(part, os.PathLike) else part.item()  # a NumPy scalar

    return msgpack.encode(value, enc_hook=plain), opaque


def _portable(error: Exception) -> tuple[str, Sequence[Any], str, str]:
    """The class of an error, its constructor's arguments, message and traceback."""
    kind = type(error)
    text, trace = (
        "".join(lines).strip()[-_LONGEST_TEXT:].encode(errors="backslashreplace").decode()
        for lines in (traceback.format_exception_only(error), traceback.format_exception(error))
    )
    try:
        arguments = error.__reduce__()[1]
        if len(_encoded(arguments)[0]) > _LONGEST_TEXT:
            arguments = ()
    except Exception:  # a third-party class may raise anything
        arguments = ()
    return f"{kind.__module__}.{kind.__qualname__}", arguments, text, trace


# -- the process ----------------------------------------------------------------------------------------


def _become_worker(supervisor: int) -> None:
    """Set process group, priority and memory allocation of the worker."""
    # Not a new session: Linux schedules sessions as groups, within which niceness counts only.
    os.setpgid(0, 0)
    os.nice(_NICENESS)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    end_with_parent(supervisor)
    _keep_memory()


def _keep_memory() -> None:
    """Let malloc keep freed memory for the next block: fresh pages took a third of the time of scoring."""
    if sys.platform == "linux":
        import ctypes

        libc = ctypes.CDLL(None)
        if not hasattr(libc, "mallopt"):  # musl
            return
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
        libc.mallopt(_M_TOP_PAD, 16 * 1024**2)


def _limit_memory(size: int) -> None:
    """Limit anonymous memory. Mapped files do not count, which may be larger than memory."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = size if hard == resource.RLIM_INFINITY else min(size, hard) if size >= 0 else hard
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


# -- frames ---------------------------------------------------------------------------------------------


def write_frame(stream: BinaryIO, value: Any) -> None:
    """Send one value."""
    data = msgpack.encode(value)
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> Any:
    """Wait for one value. Raises EOFError if the peer has closed the socket."""
    size = LENGTH.unpack(_exactly(stream, LENGTH.size))[0]
    return pickle.loads(_exactly(stream, size))  # noqa: S301 -- from the server, over our own socket


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


if __name__ == "__main__":
    main()
