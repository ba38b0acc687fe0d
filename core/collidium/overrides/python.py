"""Python: the end of an interpreter without the clean-up of modules, which takes 0.1 s.

For the programs that tests start (``collidium.testing.fork_server``). No issue is known; it can go when
Python has such a function, or with the fork server.
"""

from __future__ import annotations

import atexit
import threading
from collections.abc import Mapping
from typing import Final

TESTED: Final[Mapping[str, tuple[str, ...]]] = {}  # no distribution; the versions are those that CI runs


def finish_threads_and_exit_functions() -> None:
    """Wait for the threads that are no daemons, and run the functions registered for the end."""
    threading._shutdown()  # type: ignore[attr-defined]  # private
    atexit._run_exitfuncs()
