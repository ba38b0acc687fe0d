"""What is to be simulated, in full, and the commands that do it.

Hard processes may be those of another generator, in a Les Houches event file (hep-ph/0609017).
"""

from __future__ import annotations

import gzip
import hashlib
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Final, cast

from collidium.contracts.pipeline import LES_HOUCHES, PLACEHOLDERS, Pipeline, Stage
from collidium.contracts.task import EventRange
from collidium.errors import CollidiumError, InvalidInput
from collidium.files import durable
from collidium.order import Order, UnknownOrder, check

#: Event ids have 32 bits in the hosted format.
_EVENT_IDS: Final = 2**32
_PLACEHOLDER: Final = re.compile("{(" + "|".join(PLACEHOLDERS) + ")}")
_CHANNEL: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
_CHUNK: Final = 1024**2


@dataclass(frozen=True, slots=True)
class Production:
    """An order, made by one pipeline; its events get the ids from ``first_event`` on."""

    order: Order
    pipeline: Pipeline
    first_event: int = 0
    #: Whether the tables lie directly in the output directory, without a card.
    flat: bool = False
    #: Where the hard processes come from a file.
    lhe: LesHouches | None = None

    @property
    def events(self) -> EventRange:
        return EventRange(self.first_event, self.first_event + self.order.events)

    @property
    def identity(self) -> Mapping[str, object]:
        """What two runs share of which one may go on with the work of the other."""
        return asdict(self.order) | {
            "first_event": self.first_event,
            "pipeline": self.pipeline.name,
            "pipeline_version": self.pipeline.version,
            "flat": self.flat,
            "lhe": self.lhe.sha256 if self.lhe else "",
        }

    def words(self, stage: Stage, *, python: str, work: str, processes: int) -> list[str]:
        """The command of a stage with its placeholders filled in."""
        values = asdict(self.order) | {
            "first_event": self.first_event,
            "python": python,
            "work": work,
            "processes": processes,
            "lhe": self.lhe.sha256 if self.lhe else "",
        }
        return [_PLACEHOLDER.sub(lambda found: str(values[found[1]]), word) for word in stage.command]


def check_numbers(order: Order, first_event: int) -> None:
    """Raise UnknownOrder with everything that is wrong with the numbers of an order."""
    errors = []
    try:
        check(order, None)
    except InvalidInput as error:
        errors += error.errors
    if not 0 <= first_event <= _EVENT_IDS - max(order.events, 1):
        errors.append({"field": "first_event", "detail": f"event ids go from 0 to {_EVENT_IDS - 1}"})
    _refuse(errors)


def check_channel(order: Order, pipeline: Pipeline, lhe: LesHouches | None = None) -> None:
    """Raise UnknownOrder for a channel, a variation or a file that the pipeline cannot simulate."""
    if lhe is not None:
        if not pipeline.takes_lhe:
            detail = f"pipeline {pipeline.name} takes no Les Houches file"
            _refuse([{"field": "lhe", "detail": detail}])
        pipeline = replace(pipeline, channels=None, refused={})
    try:
        check(order, pipeline.channels, pipeline)
    except InvalidInput as error:
        _refuse(error.errors)


def can_simulate(order: Order, pipeline: Pipeline) -> bool:
    """Whether the pipeline knows the channel and the variation."""
    try:
        check_channel(order, pipeline)
    except UnknownOrder:
        return False
    return True


def _refuse(errors: list[Mapping[str, object]]) -> None:
    if errors:
        raise UnknownOrder(
            "; ".join(f"{error['field']}: {error['detail']}" for error in errors), errors=errors
        )


class CannotSimulate(CollidiumError):
    """The simulation does not begin, or cannot go on: the message gives the reason and what to do."""

    title = "Cannot simulate"


class StageFailed(CollidiumError):
    """A stage ended before its work was done; ``errors`` has the last lines that it wrote."""

    title = "Stage failed"


@dataclass(frozen=True, slots=True)
class LesHouches:
    """A file, plain or compressed by gzip."""

    path: Path
    #: Of the events, uncompressed.
    sha256: str
    events: int
    #: Sum over its processes, pb.
    picobarns: float
    #: The smallest and the largest weight of an event.
    weights: tuple[float, float]

    @classmethod
    def read(cls, path: Path) -> LesHouches:
        """Read a file once. Raises UnknownOrder where it is not one, and OSError."""
        digest, count, picobarns = hashlib.sha256(), 0, 0.0
        weights: list[float] = []
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
                        weights = [min([weight, *weights]), max([weight, *weights])]
                        count, block = count + 1, b""
        except (ValueError, IndexError, EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise _refused(f"{path} is not a Les Houches event file: {error}") from error
        if not count:
            raise _refused(f"{path} has no Les Houches events")
        return cls(path, digest.hexdigest(), count, picobarns, (weights[0], weights[-1]))

    def check(self, order: Order, first_event: int) -> None:
        """Raise UnknownOrder where the file lacks events of the order; event ids are places in it."""
        if not _CHANNEL.fullmatch(order.channel):
            raise _refused("a channel is a name of small letters, digits and _", "channel")
        if first_event + order.events > self.events:
            raise _refused(f"{self.path} has {self.events} events, from id 0 on", "events")

    @property
    def facts(self) -> Mapping[str, str]:
        """What a card says of it."""
        return {
            "Hard process": f"Les Houches file, sha256 {self.sha256}",
            "Cross section": f"{self.picobarns:.6g} pb, as the file gives it",
            "Weights": "from {:.6g} to {:.6g}, as the file gives them; in no table".format(*self.weights),
        }

    def place(self, work: Path) -> None:
        """Put the events, uncompressed, where stages read them."""
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
