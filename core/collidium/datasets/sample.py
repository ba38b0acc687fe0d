"""The five real events that come with the platform."""

from __future__ import annotations

from pathlib import Path
from typing import Final

#: A parquet file for each table; the README there has source and licence.
DIRECTORY: Final = Path(__file__).parents[1] / "demo" / "data" / "odd-ttbar-pu0"
CONFIG: Final = "ttbar_pu0"
LICENSE: Final = "CC-BY-4.0"
SOURCE: Final = "CERN/ColliderML-Release-1, arXiv:2512.15230"
