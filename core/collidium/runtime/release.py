"""Which release of the platform this is, and the commit it was built from."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from typing import Final

from collidium import __version__

_PACKAGE: Final = Path(__file__).parents[1]
#: Written by the build (``hatch_build.py``).
_BUILT_FROM: Final = _PACKAGE / "commit.txt"


@cache
def commit() -> str:
    """Return the commit that this was built from, or that is checked out; empty if unknown."""
    if _BUILT_FROM.is_file():
        return _BUILT_FROM.read_text(encoding="ascii").strip()
    checkout = _PACKAGE.parents[1]
    if not (checkout / ".git").exists() or not (checkout / "hatch_build.py").is_file():
        return ""
    command = ["git", "-C", str(checkout), "rev-parse", "--short=10", "HEAD"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""


def described() -> str:
    """Return the version with its commit, such as ``0.4.0 (commit 1bbf4a5701)``."""
    return f"{__version__} (commit {commit()})" if commit() else __version__
