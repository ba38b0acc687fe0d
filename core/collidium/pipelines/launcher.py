"""``python launcher.py PARENT WORD …``: executes a command that the kernel ends with its parent (Linux).

A separate program, as it is unsafe to run code between fork and exec in a process with threads.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_NOT_FOUND: Final = 127
_NOT_EXECUTABLE: Final = 126


def main(parent: int, words: list[str]) -> int:
    """Execute the command; if that fails, return the exit code of a shell."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # the parent ended before this was set
        return 128 + signal.SIGTERM
    try:
        os.execvp(words[0], words)  # noqa: S606  # a list of words, as it was given
    except OSError as error:
        print(f"{words[0]}: {error.strerror}", file=sys.stderr)  # noqa: T201  # into the log of the stage
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
