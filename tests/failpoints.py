"""The failpoints of the platform, found where the code calls them: a process is killed at each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import collidium

_CALL: Final = re.compile(r'\breached\("([a-z_]+\.[a-z_]+)"\)')

NAMES: Final = frozenset(
    name
    for path in Path(collidium.__file__).parent.rglob("*.py")
    for name in _CALL.findall(path.read_text(encoding="utf-8"))
)
