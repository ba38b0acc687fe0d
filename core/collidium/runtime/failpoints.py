"""Places where a test ends the process at once, as a power cut would.

The environment variable ``COLLIDIUM_FAILPOINT`` names one; without it these calls do nothing. They stand at
the boundaries where something outside the database has just happened or a transaction is about to end.
"""

from __future__ import annotations

import os
import signal
from typing import Final

VARIABLE: Final = "COLLIDIUM_FAILPOINT"


def reached(name: str) -> None:
    """End this process (SIGKILL) if the test asked for it here."""
    if os.environ.get(VARIABLE) == name:
        os.kill(os.getpid(), signal.SIGKILL)
