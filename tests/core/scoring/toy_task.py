"""A small task whose tally reveals lost and repeated rows, and variants of it that fail."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.executor import Limits
from collidium.contracts.tables import flatten
from collidium.contracts.task import (
    Block,
    Card,
    Column,
    Draws,
    EventRange,
    Metric,
    Problem,
    Reconstruction,
    Tables,
    Task,
)

if TYPE_CHECKING:
    from collidium.scoring.engine import ScoringResult
    from collidium.scoring.truth.versions import Truth

#: Scores a file; prepares truth below a directory. See the fixtures ``score`` and ``make``.
Score = Callable[..., Awaitable["ScoringResult"]]
Make = Callable[..., Awaitable["Truth"]]

LIMITS = Limits(memory_bytes=1024**3, seconds=60)
EVENTS = EventRange(10, 17)
#: Items of each event; the third has none.
SIZES = (20, 31, 0, 7, 40, 1, 33)


def items() -> pa.Table:
    """One row per item: event_id, item_id and the answer."""
    events = np.repeat(np.arange(EVENTS.start, EVENTS.stop, dtype=np.int64), SIZES)
    numbers = np.concatenate([np.arange(size) for size in SIZES]).astype(np.int64)
    answers = np.random.default_rng(3).integers(0, 1000, len(numbers)).astype(np.float64)
    return pa.table({"event_id": events, "item_id": numbers, "value": answers})


def write_dataset(directory: Path) -> None:
    """The items in the hosted layout, one row per event, in one file."""
    table = items()
    edges = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int32)

    def lists(column: str) -> pa.Array:
        return pa.ListArray.from_arrays(pa.array(edges), table.column(column).combine_chunks())

    columns = {"item_id": lists("item_id"), "answer": lists("value")}
    event_ids = pa.array(range(EVENTS.start, EVENTS.stop), pa.uint32())
    pq.write_table(pa.table({"event_id": event_ids, **columns}), directory / "items.parquet")


@dataclass(frozen=True)
class ToyTally:
    """Sums over events; ``events`` in the order in which they were merged."""

    events: tuple[int, ...] = ()
    rows: int = 0
    right: int = 0
    total: int = 0
    #: Changes with every row that is lost, doubled or given another value.
    fingerprint: int = 0


class Toy(Task):
    card: ClassVar[Card] = Card(
        name="toy",
        title="Toy",
        description="Say the value of each item.",
        dataset="toy_pu0",
        eval_events=EVENTS,
        inputs=("items",),
        columns=(
            Column(name="event_id", kind="integer", description="Event of the item."),
            Column(name="item_id", kind="integer", description="The item."),
            Column(name="value", kind="float", description="Its value."),
        ),
        truth_sources=("items",),
        rows_of="answers",
        metrics=(
            Metric(
                name="accuracy", higher_is_better=True, description="Fraction of items whose value is right."
            ),
            Metric(name="missing", higher_is_better=False, description="Fraction of items without a value."),
        ),
    )
    version: ClassVar[str] = "1"

    def prepare(self, tables: Tables) -> dict[str, pa.Table]:
        flat = flatten(tables["items"], ["item_id", "answer"])
        return {"answers": flat.set_column(0, "event_id", flat.column("event_id").cast(pa.uint32()))}

    def check(self, block: Block) -> list[Problem]:
        keys = _keys(block.predictions)
        unknown = ~np.isin(keys, _keys(block.truth["answers"]))
        if not unknown.any():
            return []
        rows = block.predictions.take(np.flatnonzero(unknown)[:7]).to_pylist()
        return [
            Problem(
                "unknown-item",
                "no such item",
                "item_id",
                rows[0]["event_id"],
                int(unknown.sum()),
                tuple(rows),
            )
        ]

    def score(self, block: Block) -> ToyTally:
        truth = block.truth["answers"]
        events = np.asarray(block.predictions.column("event_id")).astype(np.int64)
        assert np.all(events[1:] >= events[:-1])
        assert np.all((events >= block.events.start) & (events < block.events.stop))
        answers = dict(zip(_keys(truth).tolist(), np.asarray(truth.column("answer")).tolist(), strict=True))
        keys = _keys(block.predictions).tolist()
        values = np.asarray(block.predictions.column("value")).tolist()
        return ToyTally(
            events=tuple(range(block.events.start, block.events.stop)),
            rows=len(keys),
            right=sum(answers[key] == value for key, value in zip(keys, values, strict=True)),
            total=truth.num_rows,
            fingerprint=sum(hash((key, float(value))) for key, value in zip(keys, values, strict=True)),
        )

    def merge(self, tallies: Sequence[ToyTally]) -> ToyTally:
        return ToyTally(
            tuple(event for tally in tallies for event in tally.events),
            sum(tally.rows for tally in tallies),
            sum(tally.right for tally in tallies),
            sum(tally.total for tally in tallies),
            sum(tally.fingerprint for tally in tallies),
        )

    def metrics(self, tally: ToyTally) -> dict[str, float]:
        return {"accuracy": tally.right / tally.total, "missing": 1 - tally.rows / tally.total}

    def warnings(self, tally: ToyTally) -> list[str]:
        return ["some items have no value"] if tally.rows < tally.total else []

    def baselines(self) -> dict[str, Reconstruction]:
        return {"constant": constant, "zero": zero}


def constant(tables: Tables) -> pa.Table:
    """500 for every item."""
    return zero(tables, 500)


def zero(tables: Tables, value: float = 0) -> pa.Table:
    """Nothing for every item: a second baseline, which sets no floor."""
    flat = flatten(tables["items"], ["item_id"])
    return flat.append_column("value", pa.array(np.full(flat.num_rows, float(value))))


def _keys(table: pa.Table) -> Any:
    events = np.asarray(table.column("event_id")).astype(np.int64)
    return events * 1_000_000 + np.asarray(table.column("item_id")).astype(np.int64)


# -- tasks that ask for more ----------------------------------------------------------------------------


class Telling(Toy):
    """Reports what it counted."""

    def warnings(self, tally: ToyTally) -> list[str]:
        return [*super().warnings(tally), repr(tally)]


class Strict(Toy):
    """Has bounds, and columns with one value per event or file."""

    card: ClassVar[Card] = replace(
        Toy.card,
        columns=(
            *Toy.card.columns[:2],
            Column(name="value", kind="float", description="Its value.", bounds=(0, 1000)),
            Column(
                name="seconds", kind="float", description="Of an event.", bounds=(0, inf), one_per="event"
            ),
            Column(name="size", kind="integer", description="Of all.", bounds=(1, inf), one_per="file"),
        ),
    )


class Gated(Toy):
    """Has no accuracy if less than half is right."""

    card: ClassVar[Card] = replace(
        Toy.card,
        metrics=(replace(Toy.card.metrics[0], missing_when="less than half is right"), Toy.card.metrics[1]),
    )

    def metrics(self, tally: ToyTally) -> dict[str, float]:
        metrics = super().metrics(tally)
        return metrics if metrics["accuracy"] >= 0.5 else {"missing": metrics["missing"]}


class Undefined(Toy):
    """Cannot compute an accuracy for some events: ``wanted`` are those for which it can."""

    def __init__(self, wanted: frozenset[int], how: str) -> None:
        self.wanted, self.how = wanted, how

    def metrics(self, tally: ToyTally) -> dict[str, float]:
        metrics = super().metrics(replace(tally, total=max(tally.total, 1)))
        if not self.wanted.isdisjoint(tally.events):
            return metrics
        if self.how == "raises":
            raise ZeroDivisionError("of no event")
        return metrics | {"accuracy": float("nan")}


# -- tasks that go wrong --------------------------------------------------------------------------------


def _fail(*_: Any) -> Any:
    raise KeyError("a fault of the task")


def _loop(*_: Any) -> Any:
    while True:
        time.sleep(60)  # the fault that is tested


#: What goes wrong: a method of the task, and what happens instead.
BROKEN: dict[str, tuple[str, Callable[..., Any]]] = {
    "raises in check": ("check", _fail),
    "raises in score": ("score", _fail),
    "raises in merge": ("merge", _fail),
    "raises in metrics": ("metrics", _fail),
    "loops in score": ("score", _loop),
    "loops in metrics": ("metrics", _loop),
    "uses too much memory": ("score", lambda _: bytearray(64 * 1024**3)),
    "crashes": ("score", lambda _: os._exit(11)),
    "a metric is NaN": ("metrics", lambda _: {"accuracy": nan, "missing": 0.0}),
    "a metric is infinite": ("metrics", lambda _: {"accuracy": 1.0, "missing": inf}),
    "a metric is missing": ("metrics", lambda _: {"accuracy": 1.0}),
    "a metric is unknown": ("metrics", lambda _: {"accuracy": 1.0, "missing": 0.0, "beauty": 1.0}),
    "a replicate is NaN": ("resample", lambda _, draws: [{"accuracy": 1.0, "missing": nan} for _ in draws]),
    "replicates are missing": ("resample", lambda *_: [{"accuracy": 1.0, "missing": 0.0}]),
}


class Broken(Toy):
    """Goes wrong in one of the ways of :data:`BROKEN`."""

    def __init__(self, how: str) -> None:
        self.how = how

    def _call(self, method: str, *arguments: Any) -> Any:
        broken, fault = BROKEN[self.how]
        return fault(*arguments) if method == broken else getattr(super(), method)(*arguments)

    def check(self, block: Block) -> list[Problem]:
        return self._call("check", block)

    def score(self, block: Block) -> ToyTally:
        return self._call("score", block)

    def merge(self, tallies: Sequence[ToyTally]) -> ToyTally:
        return self._call("merge", tallies)

    def metrics(self, tally: ToyTally) -> dict[str, float]:
        return self._call("metrics", tally)

    def resample(self, tallies: Sequence[ToyTally], draws: Draws) -> Sequence[Mapping[str, float]]:
        return self._call("resample", tallies, draws)


class Spins(Toy):
    """Computes for a second over the first block."""

    def score(self, block: Block) -> ToyTally:
        end = time.process_time() + (1 if EVENTS.start in block.events else 0)
        while time.process_time() < end:
            pass
        return super().score(block)


class Waits(Toy):
    """Writes its process id to a file, once, and then never comes to an end."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def score(self, block: Block) -> ToyTally:
        if not self.path.exists():
            self.path.with_suffix(".tmp").write_text(str(os.getpid()))
            self.path.with_suffix(".tmp").rename(self.path)
            Event().wait()
        return super().score(block)


class EndsBy(Toy):
    """Ends its worker by a signal."""

    def __init__(self, number: int) -> None:
        self.number = number

    def score(self, block: Block) -> ToyTally:
        signal.signal(self.number, signal.SIG_DFL)
        os.kill(os.getpid(), self.number)
        return super().score(block)


def loaded_modules(_: object) -> set[str]:
    """Top-level packages that the worker has imported so far."""
    return {name.partition(".")[0] for name, module in sys.modules.items() if module is not None}


def process_id(_: object) -> int:
    """The worker."""
    return os.getpid()
