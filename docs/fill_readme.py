"""Copies the files that README.md shows in full into it: ``python docs/fill_readme.py``."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

_SHOWN = re.compile(r"(<!-- same as: (\S+) -->\n```\w+\n)(.*?)(```\n)", re.DOTALL)


def filled(document: str) -> str:
    """The document with each file that it shows as the file is now."""
    return _SHOWN.sub(lambda shown: shown[1] + (ROOT / shown[2]).read_text() + shown[4], document)


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(filled(readme.read_text()))
