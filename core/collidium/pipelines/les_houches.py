"""Les Houches event files (hep-ph/0609017), which contain hard processes of another generator."""

from __future__ import annotations

import gzip
import hashlib
import math
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from collidium.contracts.pipeline import LES_HOUCHES
from collidium.files import durable
from collidium.order import Order, UnknownOrder

_CHANNEL: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CHUNK: Final = 1024**2


@dataclass(frozen=True, slots=True)
class LesHouches:
    """A Les Houches event file, plain or compressed with gzip."""

    path: Path
    #: Of the uncompressed file.
    sha256: str
    events: int
    #: Cross section in pb, summed over processes.
    picobarns: float
    #: Minimum and maximum of the events' weights.
    weights: tuple[float, float]

    @classmethod
    def read(cls, path: Path) -> LesHouches:
        """Read a file. Raises UnknownOrder for an invalid file, and OSError."""
        digest, count, picobarns = hashlib.sha256(), 0, 0.0
        lowest, highest = math.inf, -math.inf
        processes, block = 0, b""
        try:
            with _opened(path) as lines:
                for line in lines:
                    digest.update(line)
                    if line.lstrip().startswith(b"<"):
                        block = line.split()[0].rstrip(b">") if line.split() else b""
                    elif block == b"<init":
                        processes, block = int(line.split()[9]), b"process"
                    elif block == b"process" and processes:
                        picobarns, processes = picobarns + float(line.split()[0]), processes - 1
                    elif block == b"<event":
                        weight = float(line.split()[2])
                        lowest, highest = min(weight, lowest), max(weight, highest)
                        count, block = count + 1, b""
        except (ValueError, IndexError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise _refused(f"{path} is not a Les Houches event file: {error}") from error
        if not count:
            raise _refused(f"{path} has no Les Houches events")
        return cls(path, digest.hexdigest(), count, picobarns, (lowest, highest))

    def check(self, order: Order, first_event: int) -> None:
        """Raise UnknownOrder if the file lacks events of the order. Event ids are positions in it."""
        if not _CHANNEL.fullmatch(order.channel):
            raise _refused("a channel is a name of small letters, digits and _", "channel")
        if first_event + order.events > self.events:
            raise _refused(f"{self.path} has {self.events} events, from id 0 on", "events")

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts for a dataset card."""
        return {
            "Hard process": f"Les Houches file, sha256 {self.sha256}",
            "Cross section": f"{self.picobarns:.6g} pb, as the file gives it",
            "Weights": "from {:.6g} to {:.6g}, as the file gives them; in no table".format(*self.weights),
        }

    def place(self, work: Path) -> None:
        """Write the uncompressed file to the working directory of stages."""
        target = work / LES_HOUCHES
        if not target.exists():
            with _opened(self.path) as source, durable.replacing(target) as copy:
                shutil.copyfileobj(source, copy, _CHUNK)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as raw:
        compressed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if compressed:
            with gzip.open(raw) as file:
                yield cast("IO[bytes]", file)
        else:
            yield raw


def _refused(detail: str, field: str = "lhe") -> UnknownOrder:
    return UnknownOrder(detail, errors=[{"field": field, "detail": detail}])
