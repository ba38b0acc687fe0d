"""What a job sees of the server's environment: how to find programs and how to write, and no secret."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: The variable by which a job's processes are known, wherever they went.
MARK: Final = "COLLIDIUM_JOB"

#: Not the proxies: an address may hold a password.
_KEPT: Final = frozenset({"LANG", "LANGUAGE", "LD_LIBRARY_PATH", "OMP_NUM_THREADS", "PYTHONPATH", "TZ"})


def search_path(environment: Mapping[str, str]) -> str:
    """Where programs are looked for: first among those that were installed with this Python."""
    return os.pathsep.join([sysconfig.get_path("scripts"), environment.get("PATH", os.defpath)])


def surroundings(environment: Mapping[str, str], name: str, scratch: Path) -> dict[str, str]:
    """The environment of the job of that name, whose home is ``scratch``."""
    kept = {name: value for name, value in environment.items() if name in _KEPT or name.startswith("LC_")}
    return kept | {
        "PATH": search_path(environment),
        "HOME": str(scratch),
        "TMPDIR": str(scratch),
        MARK: name,
    }
