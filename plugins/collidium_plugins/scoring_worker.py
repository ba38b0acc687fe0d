"""A worker process of the executor ``processes``; run as a script, never imported by the server.

It reads calls from standard input and answers on what was standard output, a frame each: eight bytes of
length, then a pickle. It imports only what the pickled function and item need.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import resource
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from typing import Any, BinaryIO, Final

LENGTH: Final = struct.Struct("<Q")

_PR_SET_PDEATHSIG: Final = 1
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX = -1, -2, -4
#: Below the server, so that it answers while all cores score.
_NICENESS: Final = 5


def main() -> None:
    """Serve calls until standard input ends."""
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    # What a task prints goes to the server's log, not into the answers.
    os.dup2(2, 1)
    _settle(parent=int(sys.argv[1]))
    sys.path[:] = read_frame(requests)
    write_frame(answers, "ready")
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            _serve(requests, answers)


def _serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer one call: ``begun`` once its code is imported, then what became of it."""
    size = LENGTH.unpack(_exactly(requests, LENGTH.size))[0]
    data = _exactly(requests, size)
    try:
        function, item, memory_bytes = pickle.loads(data)  # noqa: S301 -- from the server, over our own pipe
    except Exception as error:  # whatever importing a stranger's task raises is the answer
        write_frame(answers, "begun")
        write_frame(answers, ("raised", _portable(error)))
        return
    write_frame(answers, "begun")
    _limit_memory(memory_bytes)
    answer = _call(function, item)
    _limit_memory(resource.RLIM_INFINITY)
    write_frame(answers, answer)


def _call(function: Callable[[Any], Any], item: Any) -> tuple[str, Any]:
    try:
        return "returned", pickle.dumps(function(item), pickle.HIGHEST_PROTOCOL)
    except MemoryError:
        return "memory", None
    except Exception as error:  # the function's own, raised again by the caller
        return "raised", _portable(error)


def _portable(error: Exception) -> Exception:
    """The error as it will arrive, its traceback as a note; one that cannot be pickled by its message."""
    error.add_note("".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own bytes
    except Exception:  # a stranger's class may break in any way when it is pickled
        plain = RuntimeError(f"{type(error).__name__}: {error}")
        plain.add_note(error.__notes__[-1])
        return plain
    return error


# -- the process ----------------------------------------------------------------------------------------


def _settle(parent: int) -> None:
    """Outlive signals meant for the server, but never the server itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICENESS)
    if sys.platform == "linux":
        import ctypes

        libc = ctypes.CDLL(None)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            sys.exit("the server ended before its worker began")
        _keep_memory(libc)


def _keep_memory(libc: Any) -> None:
    """Let malloc keep what it has: blocks follow each other, and fresh pages cost a third of the scoring."""
    if hasattr(libc, "mallopt"):
        libc.mallopt(_M_MMAP_MAX, 0)
        libc.mallopt(_M_TRIM_THRESHOLD, 2**31 - 1)
        libc.mallopt(_M_TOP_PAD, 16 * 1024**2)


def _limit_memory(size: int) -> None:
    """Limit anonymous memory; mapped files, which may be larger than memory, do not count."""
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = size if hard == resource.RLIM_INFINITY else min(size, hard) if size >= 0 else hard
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


# -- frames ---------------------------------------------------------------------------------------------


def write_frame(stream: BinaryIO, value: Any) -> None:
    """Send one value."""
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    stream.write(LENGTH.pack(len(data)) + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> Any:
    """Wait for one value; raises EOFError when there will be none."""
    size = LENGTH.unpack(_exactly(stream, LENGTH.size))[0]
    return pickle.loads(_exactly(stream, size))  # noqa: S301 -- from the server, over our own pipe


def _exactly(stream: BinaryIO, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data


if __name__ == "__main__":
    main()
