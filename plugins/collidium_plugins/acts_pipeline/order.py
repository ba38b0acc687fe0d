"""What a stage is to do, and how its events are cut into chunks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from collidium_plugins.acts_pipeline import VERSION
from collidium_plugins.acts_pipeline.failures import StageFailed
from collidium_plugins.acts_pipeline.files import writing

_ORDER: Final = "order.json"
#: Chunks that a run is cut into at least, so that processes are busy to the end, and the most events of one.
_CHUNKS: Final = 16
_MOST_EVENTS: Final = 50


@dataclass(frozen=True, slots=True)
class Order:
    """The events to make, and the directory to work in."""

    channel: str
    events: int
    pileup: int
    seed: int
    first_event: int
    work: Path

    def chunks(self) -> list[range]:
        """The event ids, chunk by chunk. An event does not depend on its chunk; work is saved by it."""
        most = max(1, _MOST_EVENTS // (1 + self.pileup // 4))
        size = min(most, -(-self.events // _CHUNKS))
        end = self.first_event + self.events
        return [range(first, min(first + size, end)) for first in range(self.first_event, end, size)]

    def folder(self, name: str) -> Path:
        """The folder ``name`` of the working directory, made when absent.

        Raises StageFailed when it holds the work of another order.
        """
        folder = self.work / name
        folder.mkdir(parents=True, exist_ok=True)
        ours = json.dumps(dict(self._identity()), sort_keys=True)
        path = folder / _ORDER
        if not path.exists():
            with writing(path) as partial:
                partial.write_text(ours)
        elif path.read_text() != ours:
            raise StageFailed(f"{folder} holds the work of another order: remove it, or work elsewhere")
        return folder

    def chunk(self, name: str, events: range) -> Path:
        """The file of a chunk in the folder ``name``."""
        return self.work / name / f"events-{events.start:010}-{events.stop:010}.arrow"

    def require(self, name: str) -> None:
        """Raises StageFailed unless the folder ``name`` has every chunk of this order."""
        self.folder(name)
        missing = [chunk for chunk in self.chunks() if not self.chunk(name, chunk).exists()]
        if missing:
            first = missing[0]
            raise StageFailed(
                f"{self.work / name} lacks events {first.start} to {first.stop - 1}"
                f"{f' and {len(missing) - 1} more chunks' if missing[1:] else ''}: run the stage before first"
            )

    def _identity(self) -> Mapping[str, object]:
        return {"version": VERSION} | {k: v for k, v in asdict(self).items() if k != "work"}
