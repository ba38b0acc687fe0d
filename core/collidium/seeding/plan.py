"""What a server is seeded with: datasets, which of them tasks are scored on, and what making them takes."""

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
from collidium.datasets.publishing.mixing import Mixing, mix
from collidium.datasets.publishing.preparing import ReportProgress
from collidium.datasets.publishing.public_part import CHANNELS as CHANNEL_TABLE
from collidium.datasets.writing import folder, shard_name
from collidium.errors import InvalidInput, UnusableDataset
from collidium.hub.sources import HubDataset
from collidium.order import DEFAULT_SEED

#: Where events are taken from.
Source = Path | HubDataset

#: What cards say of most events.
SIMULATED: Final = "Simulated events, made by this server."
#: Of training sets.
PUBLIC_SEED: Final = DEFAULT_SEED
#: Event ids of evaluation sets start here, those of training sets at 0.
FIRST_EVALUATED: Final = 90_000
#: CPU seconds and bytes of an event of ttbar, and of each collision of its pileup.
_SECONDS, _PILEUP_SECONDS, _BYTES, _PILEUP_BYTES = 0.24, 0.095, 300_000, 46_000
#: Intermediate files of a simulation, in the size of its tables.
_WORK_FACTOR: Final = 4
#: CPU seconds that the stages take for a channel before its first event, and those of a truth or submission.
_START_SECONDS, SCORING_SECONDS = 12.0, 4.0
#: CPU seconds of track finders, in the mean, for an event without pileup and for each collision.
_TRACKING_SECONDS, _PILEUP_TRACKING_SECONDS = 0.2, 0.08

#: Channels of the anomaly mix: what is known, and what is searched for.
BACKGROUND: Final = ("ttbar", "zmumu", "zee", "jets")
SIGNALS: Final = ("higgs_portal", "susy_gmsb", "hidden_valley", "zprime")
#: Signals in the mix; far more than the usual 1%, which would be ten events here.
SIGNAL_PERCENT: Final = 20
#: Events that are copied at once.
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
    """Mix the first ``events`` of each channel in ``sources``, a dataset each, at ``output``; blocks.

    Parameters
    ----------
    seed : int, optional
        Seed of the order, as secret as the channels; default: a random one.

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
    """Copy a dataset's events at these places, counted from its first, in the hosted layout; blocks.

    Raises UnusableDataset where there are fewer.
    """
    configs = Dataset(source).configs()
    config = config or next(iter(configs))
    for name in configs.get(config) or configs[""]:  # tables outside a folder are of any config
        table = Dataset(source, config).table(name)
        ids = table.event_ids[places.start : places.stop]
        if len(ids) < len(places):
            raise UnusableDataset(f"{source} has {len(table.event_ids)} events, not {places.stop}")
        target = directory / folder(config, name)
        target.mkdir(parents=True)
        shards = [ids[first : first + _SHARD] for first in range(0, len(ids), _SHARD)]
        for number, held in enumerate(shards):
            events = table.load(EventRange(int(held[0]), int(held[-1]) + 1))
            pq.write_table(events, target / shard_name(number, len(shards)))
    return directory


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """Events of one channel, or of several that are mixed, and the name of their repository."""

    name: str
    #: The dataset config, ``<name>_pu<pileup>``.
    config: str
    #: Of each channel.
    events: int
    channels: tuple[str, ...]
    #: Whether the events are scored: made with a secret seed, published without truth.
    evaluated: bool = False
    #: The training set that cards name with these events.
    train: str = ""
    #: Where its events are taken from, and the place of the first there; None: they are simulated.
    source: Source | None = None
    first_taken: int = 0
    #: What its card says of them.
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
        """Whether it has events like those of an evaluation set, or some of its channels."""
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
        """Bytes of what it is made from, which goes when it is published."""
        if self.source is not None:
            return self._size
        return self._size + self._size * _WORK_FACTOR // len(self.channels)

    @property
    def bytes(self) -> int:
        """Bytes on disk, the truth that is kept apart included; of a mix at most half of the events stay."""
        return self._size * (1 + self.evaluated) // (1 + self.mixed)

    @property
    def _size(self) -> int:
        return len(self.channels) * self.events * (_BYTES + _PILEUP_BYTES * self.pileup)


@dataclass(frozen=True, slots=True)
class Size:
    """How much is made."""

    datasets: tuple[DatasetPlan, ...]
    #: Datasets by the kind of task: ``reading`` public events, ``tracking``, ``mix`` and ``events``.
    scored_on: MappingProxyType[str, str]
    #: Events of the kinds that are scored on few of a dataset.
    limits: MappingProxyType[str, int]

    def of_task(self, card: Card) -> DatasetPlan:
        """Return the dataset that a task is scored on."""
        name = self.scored_on[_kind(card)]
        return next(dataset for dataset in self.datasets if dataset.name == name)

    def events_of(self, card: Card, made: EventRange) -> EventRange:
        """Return the events of a dataset that a task is scored on."""
        limit = self.limits.get(_kind(card), len(made))
        return EventRange(made.start, min(made.stop, made.start + limit))

    def seconds_of(self, card: Card) -> float:
        """CPU seconds of a task's truth and of one of its baselines."""
        if _kind(card) != "tracking":
            return SCORING_SECONDS
        pileup = self.of_task(card).pileup
        per_event = _TRACKING_SECONDS + _PILEUP_TRACKING_SECONDS * pileup
        return SCORING_SECONDS + self.limits.get("tracking", self.of_task(card).events) * per_event


def _kind(card: Card) -> str:
    """What a task needs, by the events and the tables that its card names."""
    if card.eval_events.start < FIRST_EVALUATED:  # public events
        return "reading"
    if CHANNEL_TABLE in card.truth_sources:
        return "mix"
    return "tracking" if "particles" in card.truth_sources else "events"


def _made(
    ttbar: int,
    evaluated: int,
    background: int,
    mixed: int,
    tracking: int,
    reading: int,
    busy: tuple[int, int],
) -> Size:
    """The datasets of a size; ``busy`` has the events with 200 collisions to learn from, and to score."""
    datasets = [
        DatasetPlan("ttbar-train", "ttbar_pu0", ttbar, ("ttbar",)),
        *(
            DatasetPlan(f"{channel}-train", f"{channel}_pu0", background, (channel,))
            for channel in BACKGROUND
            if channel != "ttbar"
        ),
        DatasetPlan("ttbar-eval", "ttbar_pu0", evaluated, ("ttbar",), True, "ttbar-train"),
        DatasetPlan("anomaly-eval", MIX, mixed, (*BACKGROUND, *SIGNALS), True, "ttbar-train"),
    ]
    if all(busy):
        datasets += [
            DatasetPlan("ttbar-pu200-train", "ttbar_pu200", busy[0], ("ttbar",)),
            DatasetPlan("ttbar-pu200-eval", "ttbar_pu200", busy[1], ("ttbar",), True, "ttbar-pu200-train"),
        ]
    scored = {"reading": "ttbar-train", "mix": "anomaly-eval", "events": "ttbar-eval"}
    scored["tracking"] = "ttbar-pu200-eval" if all(busy) else "ttbar-eval"
    limits = {"tracking": tracking, "reading": reading}
    return Size(tuple(datasets), MappingProxyType(scored), MappingProxyType(limits))


@dataclass(frozen=True, slots=True)
class ChallengeEvents:
    """Which events a challenge has that is made with its own."""

    task: str
    #: To learn from, with truth; 0: no training set.
    train: int
    #: That are scored; of each channel of a mix.
    evaluated: int
    #: Empty: ttbar, or those of a mix.
    channel: str = ""
    pileup: int = 0
    #: Where they are taken from, the scored ones last; empty: they are simulated.
    dataset: str = ""
    config: str = ""
    public_percent: int | None = None


def of_challenge(name: str, card: Card, events: ChallengeEvents, source: Source | None) -> Size:
    """Return what is made for a challenge; raises InvalidInput for a task without events of its own."""
    kind = _kind(card)
    if kind == "reading":
        raise InvalidInput(f"{card.name} is scored on public events: use `collidium challenge new`")
    if kind == "mix" and source is not None and events.train:
        raise InvalidInput("the channels of a mix are truth: none of it can be learned from (--events 0)")
    channels: tuple[str, ...] = (events.channel or "ttbar",)
    config = f"{events.channel or 'ttbar'}_pu{events.pileup}"
    train, scored = f"{name}-train", f"{name}-eval"
    learned = DatasetPlan(train, events.config or config, events.train, channels, source=source)
    if kind == "mix" and source is None:
        if events.channel:
            raise InvalidInput(f"{card.name} is scored on a mix of channels: leave out --channel")
        channels, config = (*BACKGROUND, *SIGNALS), f"{MIX.rpartition('_pu')[0]}_pu{events.pileup}"
    origin = SIMULATED if source is None else "Events that the organisers gave."
    evaluated = DatasetPlan(
        *(scored, events.config or config, events.evaluated, channels, True),
        *(train if events.train else "", source, events.train, origin),
    )
    scored_on = MappingProxyType({kind: scored})
    return Size((learned, evaluated) if events.train else (evaluated,), scored_on, MappingProxyType({}))


_PACKAGED: Final = sample.DIRECTORY.parent
_REAL: Final = "Real events that come with Collidium, for its demo; see the documentation."
#: Of the demo, which simulates nothing.
_DEMO: Final = Size(
    (
        DatasetPlan("odd-train", sample.CONFIG, 3, ("ttbar",), False, "", sample.DIRECTORY),
        DatasetPlan("odd-eval", sample.CONFIG, 2, ("ttbar",), True, "odd-train", sample.DIRECTORY, 3, _REAL),
        DatasetPlan("jets-eval", "ttbar_pu0", 40, ("ttbar",), True, "", _PACKAGED / "jets", 0, _REAL),
        DatasetPlan("anomaly-eval", MIX, 40, ("mix",), True, "", _PACKAGED / "anomaly", 0, _REAL),
    ),
    MappingProxyType(
        {"reading": "odd-train", "tracking": "odd-eval", "mix": "anomaly-eval", "events": "jets-eval"}
    ),
    MappingProxyType({"tracking": 2, "reading": 3}),
)

SIZES: Final = MappingProxyType(
    {
        "workshop": _made(1200, 600, 150, 200, 100, 1000, (0, 0)),
        "release": _made(20_000, 10_000, 2_000, 1_500, 200, 1000, (200, 1_000)),
        "demo": _DEMO,
    }
)
