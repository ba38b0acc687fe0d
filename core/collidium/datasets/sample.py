"""The sample events that the platform ships."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

_DATA: Final = Path(__file__).parents[1] / "demo" / "data"
#: Five real events, one parquet file per table; README.md there names source and licence.
DIRECTORY: Final = _DATA / "odd-ttbar-pu0"
CONFIG: Final = "ttbar_pu0"
#: Configs of the event display, the default first: a busy simulated event with jets, and the real events.
CONFIGS: Final[Mapping[str, Path]] = {"ttbar_pu40": _DATA / "acts-ttbar-pu40", CONFIG: DIRECTORY}
#: Packaged events with truth: real ones; jets; and a mix with the channel of each event.
PACKAGED: Final = (DIRECTORY, _DATA / "jets", _DATA / "anomaly")
LICENSE: Final = "CC-BY-4.0"
SOURCES: Final[Mapping[str, str]] = {
    "ttbar_pu40": "Collidium, built-in pipeline (ACTS and Pythia)",
    CONFIG: "CERN/ColliderML-Release-1, arXiv:2512.15230",
}


def packaged(tables: Sequence[str]) -> Path | None:
    """The directory of the packaged events that have all of these tables; None if none have."""
    found = (one for one in PACKAGED if all((one / f"{table}.parquet").exists() for table in tables))
    return next(found, None) if tables else None
