"""Makes the toy task of the scoring tests importable as ``toy_task``."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "scoring"))
