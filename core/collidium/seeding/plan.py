"""The datasets that a server is seeded with, the tasks scored on each, and their sizes and times."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pyarrow.parquet as pq

from collidium.contracts.task import Card, EventRange
from collidium.datasets import Dataset, sample
from collidium.datasets.publishing.blinding import CHANNELS as CHANNEL_TABLE
from collidium.datasets.publishing.mixing import Mixing, mix
from collidium.datasets.publishing.preparing import ReportProgress
from collidium.datasets.schemas import folder, shard_name
from collidium.errors import InvalidInput, UnusableDataset
from collidium.hub.sources import HubDataset
from collidium.order import DEFAULT_SEED

#: A dataset to take events from.
Source = Path | HubDataset

#: The origin of events in cards.
SIMULATED: Final = "Events simulated by this server."
#: The seed of training sets.
PUBLIC_SEED: Final = DEFAULT_SEED
#: Event ids of evaluation sets start here, those of training sets at 0.
FIRST_EVALUATED: Final = 90_000
#: CPU seconds and bytes of a ttbar event, and of each of its pileup collisions.
_SECONDS, _PILEUP_SECONDS, _BYTES, _PILEUP_BYTES = 0.24, 0.095, 300_000, 46_000
#: Size of the intermediate files of a simulation, relative to its tables.
_WORK_FACTOR: Final = 4
#: CPU seconds of the start of a channel's simulation.
_START_SECONDS: Final = 12.0
#: Mean CPU seconds of the track finders for an event, and for each of its pileup collisions.
_TRACKING_SECONDS, _PILEUP_TRACKING_SECONDS = 0.2, 0.08

#: Channels of the anomaly mix.
BACKGROUND: Final = ("ttbar", "zmumu", "zee", "jets")
SIGNALS: Final = ("higgs_portal", "susy_gmsb", "hidden_valley", "zprime")
#: Percentage of signals in the mix; the usual 1% would be only ten events here.
SIGNAL_PERCENT: Final = 20
#: Events per copied shard.
_SHARD: Final = 1000
#: The config of the mix.
MIX: Final = "anomaly_pu0"


def mix_channels(
    sources: Sequence[Path],
    output: Path,
    events: int,
    *,
    config: str = MIX,
    first_event: int = 0,
    seed: int | None = None,
    report: ReportProgress | None = None,
) -> EventRange:
    """Mix the first ``events`` of each dataset in ``sources``, one per channel, into ``output``. Blocks.

    Parameters
    ----------
    seed : int, optional
        Seed of the order, which must be secret; default: a random one.

    Returns
    -------
    EventRange
        The ids of the mixed events.
    """
    scratch = output.with_name(f".{output.name}.shares")
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        shares = [
            copy_events(source, scratch / str(number), EventRange(0, events))
            for number, source in enumerate(sources)
        ]
        mixing = Mixing(
            shares, config, output, first_event, seed, signals=SIGNALS, signal_percent=SIGNAL_PERCENT
        )
        return mix(mixing, report).events
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def copy_events(source: Path, directory: Path, places: EventRange, config: str | None = None) -> Path:
    """Copy the events of a dataset at these positions, in the hosted layout. Blocks.

    Raises UnusableDataset if there are fewer events.
    """
    configs = Dataset(source).configs()
    config = config or next(iter(configs))
    for name in configs.get(config) or configs[""]:  # tables outside a folder belong to any config
        table = Dataset(source, config).table(name)
        ids = table.event_ids[places.start : places.stop]
        if len(ids) < len(places):
            raise UnusableDataset(f"{source} has {len(table.event_ids)} events, not {places.stop}")
        target = directory / folder(config, name)
        target.mkdir(parents=True)
        shards = [ids[first : first + _SHARD] for first in range(0, len(ids), _SHARD)]
        for number, shard in enumerate(shards):
            events = table.load(EventRange(int(shard[0]), int(shard[-1]) + 1))
            pq.write_table(events, target / shard_name(number, len(shards)))
    return directory


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """A dataset to create: events of one channel, or of several mixed channels."""

    #: The name of the repository.
    name: str
    #: The dataset config, ``<name>_pu<pileup>``.
    config: str
    #: Events of each channel.
    events: int
    channels: tuple[str, ...]
    #: Whether it is an evaluation set: simulated with a secret seed, published without truth.
    evaluated: bool = False
    #: The training set that cards name for an evaluation set.
    train: str = ""
    #: The dataset to take the events from, and the position of the first; None: simulate them.
    source: Source | None = None
    first_taken: int = 0
    #: Their origin, for the card.
    origin: str = SIMULATED

    @property
    def pileup(self) -> int:
        text = self.config.rpartition("_pu")[2]
        return int(text) if text.isdecimal() else 0

    @property
    def first_event(self) -> int:
        return FIRST_EVALUATED * self.evaluated

    @property
    def mixed(self) -> bool:
        return len(self.channels) > 1

    def trains_for(self, scored: DatasetPlan) -> bool:
        """Whether it is a training set with the pileup and some channels of an evaluation set."""
        if self.source is not None:  # events of the package or of organisers
            return self.name == scored.train
        return not self.evaluated and (
            self.pileup == scored.pileup and set(self.channels) <= set(scored.channels)
        )

    @property
    def seconds(self) -> float:
        """CPU seconds of the simulation."""
        per_event = _SECONDS + _PILEUP_SECONDS * self.pileup
        made = len(self.channels) if self.source is None else 0
        return made * (_START_SECONDS + self.events * per_event)

    @property
    def work_bytes(self) -> int:
        """Bytes of the files that are deleted when it is published."""
        if self.source is not None:
            return self._size
        return self._size + self._size * _WORK_FACTOR // len(self.channels)

    @property
    def bytes(self) -> int:
        """Bytes on disk, including withheld truth. A mix has at most half of the simulated events."""
        return self._size * (1 + self.evaluated) // (1 + self.mixed)

    @property
    def _size(self) -> int:
        return len(self.channels) * self.events * (_BYTES + _PILEUP_BYTES * self.pileup)


@dataclass(frozen=True, slots=True)
class Size:
    """A selection of datasets for ``--size`` or a challenge."""

    datasets: tuple[DatasetPlan, ...]
    #: The dataset of each kind of task: ``reading``, ``tracking``, ``mix`` and ``events``.
    scored_on: MappingProxyType[str, str]
    #: Maximum number of scored events of some kinds.
    limits: MappingProxyType[str, int]
    #: CPU seconds of a truth or submission.
    scoring_seconds: float = 4.0

    def of_task(self, card: Card) -> DatasetPlan:
        """Return the dataset that a task is scored on."""
        name = self.scored_on[_kind(card)]
        return next(dataset for dataset in self.datasets if dataset.name == name)

    def events_of(self, card: Card, made: EventRange) -> EventRange:
        """Return the events of a dataset that a task is scored on."""
        limit = self.limits.get(_kind(card), len(made))
        return EventRange(made.start, min(made.stop, made.start + limit))

    def seconds_of(self, card: Card) -> float:
        """Return the CPU seconds of a baseline of a task."""
        if _kind(card) != "tracking":
            return self.scoring_seconds
        pileup = self.of_task(card).pileup
        per_event = _TRACKING_SECONDS + _PILEUP_TRACKING_SECONDS * pileup
        return self.scoring_seconds + self.limits.get("tracking", self.of_task(card).events) * per_event


def _kind(card: Card) -> str:
    """Return the kind of a task, from the events and tables of its card."""
    if card.eval_events.start < FIRST_EVALUATED:  # public events
        return "reading"
    if CHANNEL_TABLE in card.truth_sources:
        return "mix"
    return "tracking" if "particles" in card.truth_sources else "events"


#: Events that tasks of reading speed are scored on.
_READ_EVENTS: Final = 1000


def _simulated_size(
    ttbar: int,
    evaluated: int,
    background: int,
    mixed: int,
    tracking: int,
    busy: tuple[int, int] = (0, 0),
) -> Size:
    """Return a size from numbers of events; ``busy``: training and evaluation events at pileup 200."""
    datasets = [
        DatasetPlan("ttbar-train", "ttbar_pu0", ttbar, ("ttbar",)),
        *(
            DatasetPlan(f"{channel}-train", f"{channel}_pu0", background, (channel,))
            for channel in BACKGROUND
            if channel != "ttbar"
        ),
        DatasetPlan("ttbar-eval", "ttbar_pu0", evaluated, ("ttbar",), evaluated=True, train="ttbar-train"),
        DatasetPlan("anomaly-eval", MIX, mixed, (*BACKGROUND, *SIGNALS), evaluated=True, train="ttbar-train"),
    ]
    if all(busy):
        datasets += [
            DatasetPlan("ttbar-pu200-train", "ttbar_pu200", busy[0], ("ttbar",)),
            DatasetPlan(
                "ttbar-pu200-eval",
                "ttbar_pu200",
                busy[1],
                ("ttbar",),
                evaluated=True,
                train="ttbar-pu200-train",
            ),
        ]
    scored = {"reading": "ttbar-train", "mix": "anomaly-eval", "events": "ttbar-eval"}
    scored["tracking"] = "ttbar-pu200-eval" if all(busy) else "ttbar-eval"
    limits = {"tracking": tracking, "reading": _READ_EVENTS}
    return Size(tuple(datasets), MappingProxyType(scored), MappingProxyType(limits))


@dataclass(frozen=True, slots=True)
class ChallengeEvents:
    """The events of a challenge with events of its own."""

    task: str
    #: Training events, with truth; 0: no training set.
    train: int
    #: Evaluation events, of each channel of a mix.
    evaluated: int
    #: Empty: ttbar, or the channels of a mix.
    channel: str = ""
    pileup: int = 0
    #: The dataset to take them from, evaluation events last; empty: simulate them.
    dataset: str = ""
    config: str = ""
    public_percent: int | None = None


def of_challenge(name: str, card: Card, events: ChallengeEvents, source: Source | None) -> Size:
    """Return the datasets of a challenge. Raises InvalidInput for a task that cannot have its own events."""
    kind = _kind(card)
    if kind == "reading":
        raise InvalidInput(f"{card.name} is scored on public events: use `collidium challenge new`")
    if kind == "mix" and source is not None and events.train:
        raise InvalidInput("the channels of a mix are truth: it cannot have training events (--events 0)")
    channels: tuple[str, ...] = (events.channel or "ttbar",)
    config = f"{events.channel or 'ttbar'}_pu{events.pileup}"
    train, scored = f"{name}-train", f"{name}-eval"
    learned = DatasetPlan(train, events.config or config, events.train, channels, source=source)
    if kind == "mix" and source is None:
        if events.channel:
            raise InvalidInput(f"{card.name} is scored on a mix of channels: leave out --channel")
        channels, config = (*BACKGROUND, *SIGNALS), f"{MIX.rpartition('_pu')[0]}_pu{events.pileup}"
    origin = SIMULATED if source is None else "Events of the organisers."
    evaluated = DatasetPlan(
        scored,
        events.config or config,
        events.evaluated,
        channels,
        evaluated=True,
        train=train if events.train else "",
        source=source,
        first_taken=events.train,
        origin=origin,
    )
    scored_on = MappingProxyType({kind: scored})
    return Size((learned, evaluated) if events.train else (evaluated,), scored_on, MappingProxyType({}))


_PACKAGED: Final = sample.DIRECTORY.parent
_REAL: Final = "Real events that are packaged with Collidium for its demo."
#: The size for the demo and tests, which simulates nothing.
_DEMO: Final = Size(
    (
        DatasetPlan("odd-train", sample.CONFIG, 3, ("ttbar",), source=sample.DIRECTORY),
        DatasetPlan(
            "odd-eval",
            sample.CONFIG,
            2,
            ("ttbar",),
            evaluated=True,
            train="odd-train",
            source=sample.DIRECTORY,
            first_taken=3,
            origin=_REAL,
        ),
        # The first eight packaged events with jets are in the packaged mix, too.
        DatasetPlan("jets-train", "ttbar_pu0", 16, ("ttbar",), source=_PACKAGED / "jets", first_taken=8),
        DatasetPlan(
            "jets-eval",
            "ttbar_pu0",
            16,
            ("ttbar",),
            evaluated=True,
            train="jets-train",
            source=_PACKAGED / "jets",
            first_taken=24,
            origin=_REAL,
        ),
        # As in other sizes, it has the Standard Model alone to learn from: the channels of a mix are truth.
        DatasetPlan(
            "anomaly-eval",
            MIX,
            40,
            ("mix",),
            evaluated=True,
            train="odd-train",
            source=_PACKAGED / "anomaly",
            origin=_REAL,
        ),
    ),
    MappingProxyType(
        {"reading": "odd-train", "tracking": "odd-eval", "mix": "anomaly-eval", "events": "jets-eval"}
    ),
    MappingProxyType({"tracking": 2, "reading": 3}),
    scoring_seconds=0.5,
)

SIZES: Final = MappingProxyType(
    {
        "workshop": _simulated_size(ttbar=1200, evaluated=600, background=150, mixed=200, tracking=100),
        "release": _simulated_size(
            ttbar=20_000, evaluated=10_000, background=2_000, mixed=1_500, tracking=200, busy=(200, 1_000)
        ),
        "demo": _DEMO,
    }
)
