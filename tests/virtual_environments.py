"""Virtual environments that see what is installed here: a test installs more without a download."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from collidium.testing.processes import isolated_environment


@dataclass(frozen=True, slots=True)
class VirtualEnvironment:
    """An environment of its own above the packages of the one that runs the tests."""

    directory: Path

    @classmethod
    def make(cls, directory: Path) -> VirtualEnvironment:
        beneath = find_spec("pip") is not None
        options = ["--without-pip"] if beneath else []  # to install it takes 5 s
        subprocess.run([sys.executable, "-m", "venv", *options, str(directory)], check=True)
        made = cls(directory)
        if beneath:
            (made.programs / "pip").write_text(f'#!/bin/sh\nexec {made.programs}/python -m pip "$@"\n')
            (made.programs / "pip").chmod(0o755)
        # addsitedir, unlike a bare path, also honours an editable install of the platform.
        here = sysconfig.get_path("purelib")
        pth = f"import site; site.addsitedir({here!r})\n"
        (Path(made._purelib()) / "beneath.pth").write_text(pth)
        return made

    @property
    def programs(self) -> Path:
        return self.directory / "bin"

    def environment(self, home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Variables as after activation, with nothing of the caller's own; pip downloads nothing."""
        isolated = isolated_environment(home, extra)
        return isolated | {
            "PATH": f"{self.programs}:{isolated['PATH']}",
            "VIRTUAL_ENV": str(self.directory),
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads it the wrong way round: 0 means no isolation
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_NO_COMPILE": "1",  # what is imported compiles itself
        }

    def _purelib(self) -> str:
        code = "import sysconfig; print(sysconfig.get_path('purelib'))"
        python = str(self.programs / "python")
        return subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
