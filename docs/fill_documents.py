"""Copies the files that a document shows in full into it: ``python docs/fill_documents.py``."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]

_SHOWN = re.compile(r"(<!-- same as: (\S+) -->\n```\w+\n)(.*?)(```\n)", re.DOTALL)


def filled(document: str) -> str:
    """The document with the current content of each file that it shows."""
    return _SHOWN.sub(lambda shown: shown[1] + (ROOT / shown[2]).read_text() + shown[4], document)


if __name__ == "__main__":
    for document in ROOT.glob("docs/*.md"):
        document.write_text(filled(document.read_text()))
