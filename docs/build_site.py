"""Build the site (every link and name in it, its tutorials run) and its package, which servers show."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

DOCS: Final = Path(__file__).parent
PACKAGE: Final = DOCS / "package"
#: Maximum size of the package.
MAX_BYTES: Final = 5_000_000


def build() -> None:
    """Build both. Raises CalledProcessError, or SystemExit for a package that is too large."""
    with TemporaryDirectory() as directory:
        doctrees, wheels = (str(Path(directory, name)) for name in ("doctrees", "wheel"))
        options = ("-q", "-W", "--keep-going", "-d", doctrees)
        _run("sphinx", *options, str(DOCS), str(PACKAGE / "collidium_docs/html"))
        _run("pip", "wheel", "--no-deps", "--wheel-dir", wheels, str(PACKAGE))
        (wheel,) = Path(wheels).iterdir()
        if wheel.stat().st_size >= MAX_BYTES:
            sys.exit(f"{wheel.name} has {wheel.stat().st_size} bytes; the maximum is {MAX_BYTES}")


def _run(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], check=True, cwd=DOCS.parent)


if __name__ == "__main__":
    build()
