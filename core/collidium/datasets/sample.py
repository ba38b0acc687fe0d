"""The events that come with the platform."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

_DATA: Final = Path(__file__).parents[1] / "demo" / "data"
#: Five real events: a parquet file for each table; the README there has source and licence.
DIRECTORY: Final = _DATA / "odd-ttbar-pu0"
CONFIG: Final = "ttbar_pu0"
#: The configs that the display offers, the first one first: a busy event with jets, and the real ones.
CONFIGS: Final[Mapping[str, Path]] = {"ttbar_pu40": _DATA / "acts-ttbar-pu40", CONFIG: DIRECTORY}
LICENSE: Final = "CC-BY-4.0"
SOURCES: Final[Mapping[str, str]] = {
    "ttbar_pu40": "Collidium, built-in pipeline (ACTS and Pythia)",
    CONFIG: "CERN/ColliderML-Release-1, arXiv:2512.15230",
}
