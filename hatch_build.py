"""Records the commit of a checkout in what is built from it."""

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FILE = "collidium/commit.txt"


class CommitHook(BuildHookInterface):
    """Adds a file with the commit; none if there is no checkout, or git is not installed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if not Path(self.root, ".git").exists() or version == "editable":
            return
        try:
            command = ["git", "-C", self.root, "rev-parse", "--short=10", "HEAD"]
            made = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
            commit = made.stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            return
        file = Path(tempfile.mkdtemp()) / "commit.txt"
        file.write_text(f"{commit}\n")
        target = FILE if self.target_name == "wheel" else f"core/{FILE}"
        build_data["force_include"][str(file)] = target
