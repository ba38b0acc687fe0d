"""``python launcher.py PARENT COUNT WORD …``: runs a command that the kernel ends with its parent (Linux).

The first COUNT words are the command that removes what the other one leaves when it is ended early, if any.

A separate program, as it is unsafe to run code between fork and exec in a process with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_NOT_FOUND: Final = 127
_NOT_EXECUTABLE: Final = 126
#: Seconds between SIGTERM and SIGKILL.
_STOP_SECONDS: Final = 1.0


def main(parent: int, words: list[str], removing: list[str]) -> int:
    """Execute the command; if that fails, return the exit code of a shell."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # the parent ended before this was set
        return 128 + signal.SIGTERM
    try:
        if removing:
            return _watched(words, removing)
        os.execvp(words[0], words)  # noqa: S606  # a list of words, as it was given
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201  # into the log of the stage
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE


def _watched(words: list[str], removing: list[str]) -> int:
    """Run a container engine's client; on SIGTERM end it, and then its container.

    podman's client passes the signal on only once it has set that up, which may be after the first output.
    """
    # The signal waits until the client is known.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal(signal.SIGTERM, _end)
    client = subprocess.Popen(words, preexec_fn=_hear)  # noqa: S603, PLW1509  # a list of words; no threads
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        code = client.wait()
    except _Ended:
        _stop(client)
        subprocess.run(removing, capture_output=True, check=False)  # noqa: S603  # as above
        return 128 + signal.SIGTERM
    return code if code >= 0 else 128 - code


class _Ended(BaseException):
    """SIGTERM was received."""


def _end(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    raise _Ended


def _hear() -> None:
    """Give a new process the usual treatment of SIGTERM."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


def _stop(client: subprocess.Popen[bytes]) -> None:
    client.terminate()
    try:
        client.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        client.kill()
        client.wait()


if __name__ == "__main__":
    _count = int(sys.argv[2])
    sys.exit(main(int(sys.argv[1]), sys.argv[3 + _count :], sys.argv[3 : 3 + _count]))
