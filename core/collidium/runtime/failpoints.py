"""Failpoints: places at which a test kills the process, as a power cut would.

The environment variable ``COLLIDIUM_FAILPOINT`` names one; without it these calls do nothing. They are
placed before commits, and before and after side effects outside the database.
"""

from __future__ import annotations

import os
import signal
from typing import Final

VARIABLE: Final = "COLLIDIUM_FAILPOINT"


def reached(name: str) -> None:
    """Kill this process if ``COLLIDIUM_FAILPOINT`` is ``name``."""
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
