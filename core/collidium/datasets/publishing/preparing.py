"""Prepares a dataset for publication: checks it, withholds truth, names and hashes its files.

Withheld values are replaced by null lists (:mod:`~collidium.datasets.publishing.blinding`). The truth to
score against has the same events in the same order with all values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from collidium.contracts.task import EventRange
from collidium.datasets.cards import CARD, DatasetFile, split_card
from collidium.datasets.publishing.blinding import CHANNELS, in_public_order, withheld_columns, without_truth
from collidium.datasets.publishing.survey import SurveyedConfig, SurveyedShard, survey
from collidium.datasets.publishing.version import ConfigFiles
from collidium.datasets.reading.shards import EventTable, batch_rows, blocks_of
from collidium.datasets.reading.types import as_schema, unified
from collidium.datasets.schemas import folder, shard_name, without_notes
from collidium.datasets.writing import ParquetFile, ShardWriter
from collidium.errors import InvalidInput, UnusableDataset
from collidium.files.durable import sha256_of
from collidium.runtime.progress import Progress, ProgressCount

#: Called with the current step, how much of it is done, and the total.
ReportProgress = Callable[[str, int, int], None]

_CARD_BYTES: Final = 1024**2
_SEED_IN_CARD: Final = (
    f"{CARD} is not published: it names a seed, with which anyone can make the events again, truth "
    "and all. A card without it was written instead; --card takes one of your own."
)
_SEED: Final = re.compile(r"\bseeds?\b", re.IGNORECASE)

_NAME: Final = re.compile(
    r"(?:(?P<namespace>[A-Za-z0-9][\w.-]*)/)?(?P<name>[A-Za-z0-9][\w.-]{0,95})", re.ASCII
)
_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")


@dataclass(frozen=True, slots=True)
class Withholding:
    """Events whose truth is not published, and the directory to which it is written instead."""

    events: EventRange
    truth: Path


@dataclass(frozen=True, slots=True)
class Publication:
    """A dataset to publish, its repository and options. Raises InvalidInput for invalid options."""

    directory: Path
    #: ``NAME`` in the token's own namespace, or ``NAMESPACE/NAME``.
    repo: str
    #: The only config to publish, or the config of tables in no folder.
    config: str | None = None
    private: bool = False
    #: Git tag of this version.
    tag: str | None = None
    #: Title of the commit.
    message: str | None = None
    #: The ``README.md`` of the repository; default: the directory's own, or a generated one.
    card: Path | None = None
    withholding: Withholding | None = None
    #: Hub tag of the platform's datasets.
    platform_tag: str = "collidium"

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.repo):
            raise InvalidInput(f"{self.repo!r} cannot be the name of a repository: NAME or NAMESPACE/NAME")
        if self.tag is not None and not _TAG.fullmatch(self.tag):
            raise InvalidInput(f"{self.tag!r} cannot be a tag: only letters, digits and . _ + -")
        if self.withholding is not None:
            inside, outside = self.withholding.truth.resolve(), self.directory.resolve()
            if inside == outside or outside in inside.parents or inside in outside.parents:
                raise InvalidInput(
                    f"{self.withholding.truth}: the truth must not lie in or around the published directory"
                )


@dataclass(frozen=True, slots=True)
class Prepared:
    """Files to upload."""

    configs: Sequence[ConfigFiles]
    #: Each file with its local path.
    files: Mapping[DatasetFile, Path]
    #: The publisher's own card.
    readme: str | None
    left_out: Sequence[str]
    notes: Sequence[str]


def prepare(publication: Publication, scratch: Path, report: ReportProgress) -> Prepared:
    """Check the dataset and prepare the files to upload. Blocks.

    With truth to withhold, writes the public part to ``scratch`` and the truth to its directory. Raises
    UnusableDataset for an invalid dataset, and InvalidInput if that directory has the truth of other events.
    """
    withholding = publication.withholding
    readme, notes = _card(publication)
    found = survey(
        publication.directory, publication.config, lambda done, total: report("checking", done, total)
    )
    for surveyed in found.configs:
        _check_channels(surveyed, withholding)
    files: dict[DatasetFile, Path] = {}
    configs = []
    for surveyed in found.configs:
        withheld = None if withholding is None else _withhold(withholding, surveyed, scratch, report)
        named = (
            _shards(with_equal_types(surveyed, scratch / "typed"))
            if withheld is None
            else _written_shards(withheld.public, surveyed.name)
        )
        described = {_describe(path, name): path for name, path in named}
        files |= described
        configs.append(_config_files(surveyed, list(described), withheld))
    return Prepared(configs, files, readme, found.left_out, notes)


def _check_channels(config: SurveyedConfig, withholding: Withholding | None) -> None:
    """Raise InvalidInput if the channels of a mix would be published."""
    if CHANNELS not in config.tables or not len(config.events):
        return
    events = EventRange(int(config.events[0]), int(config.events[-1]) + 1)
    withheld = None if withholding is None else withholding.events
    if withheld is None or withheld.start > events.start or withheld.stop < events.stop:
        raise InvalidInput(
            f"{config.name} is a mix, and its table {CHANNELS} would publish the channel of its "
            f"events: add --withhold-truth {events} and --truth-output"
        )


def _shards(config: SurveyedConfig) -> Iterator[tuple[str, Path]]:
    """Each shard's path in the repository and local path."""
    for table, shards in sorted(config.tables.items()):
        for number, shard in enumerate(shards):
            yield f"{folder(config.name, table)}/{shard_name(number, len(shards))}", shard.path


def with_equal_types(config: SurveyedConfig, scratch: Path) -> SurveyedConfig:
    """Write shards again, below ``scratch``, whose columns have other types than those of other shards.

    Blocks. Raises UnusableDataset for values that the common type does not hold.
    """
    tables = {
        name: list(_typed(name, shards, scratch / folder(config.name, name)))
        for name, shards in config.tables.items()
    }
    return replace(config, tables=tables)


def _typed(table: str, shards: Sequence[SurveyedShard], scratch: Path) -> Iterator[SurveyedShard]:
    if all(shard.schema.equals(shards[0].schema) for shard in shards):
        yield from shards
        return
    schema = unified(table, {shard.path.name: shard.schema for shard in shards})
    scratch.mkdir(parents=True)
    for number, shard in enumerate(shards):
        path = scratch / shard_name(number, len(shards))
        with closing(ParquetFile(path, schema)) as file, pq.ParquetFile(shard.path) as source:
            for batch in source.iter_batches(batch_rows(shard.path.stat().st_size, len(shard.events))):
                file.write(as_schema(pa.table(batch), schema, shard.path.name))
        yield replace(shard, path=path, schema=schema)


def _written_shards(directory: Path, config: str) -> Iterator[tuple[str, Path]]:
    for path in sorted((directory / "data").glob(f"{config}_*/*.parquet")):
        yield path.relative_to(directory).as_posix(), path


def _describe(path: Path, name: str) -> DatasetFile:
    return DatasetFile(name, sha256_of(path), path.stat().st_size, pq.read_metadata(path).num_rows)


def _config_files(
    config: SurveyedConfig, files: Sequence[DatasetFile], withheld: Withheld | None
) -> ConfigFiles:
    events = config.events
    return ConfigFiles(
        name=config.name,
        events=len(events),
        first_event=int(events[0]) if len(events) else 0,
        last_event=int(events[-1]) if len(events) else 0,
        files=files,
        withheld=None if withheld is None else str(withheld.events),
        withheld_columns=None if withheld is None else withheld.columns,
    )


def _withhold(
    withholding: Withholding, config: SurveyedConfig, scratch: Path, report: ReportProgress
) -> Withheld:
    made = withhold(
        config,
        withholding.events,
        public=scratch / "public",
        truth=scratch / "truth",
        progress=lambda done, total: report("withholding", done, total),
    )
    _keep(made.truth, withholding.truth, [folder(config.name, table) for table in config.tables])
    return made


def _keep(made: Path, place: Path, folders: Sequence[str]) -> None:
    """Move folders of truth to their private directory. Raises InvalidInput if it has different truth."""
    there = [name for name in folders if (place / name).exists()]
    if other := [name for name in there if _contents(place / name) != _contents(made / name)]:
        raise InvalidInput(
            f"{place / other[0]} holds the truth of other events: choose another directory, or delete it if "
            "nothing is scored against it any more"
        )
    place.mkdir(parents=True, exist_ok=True)
    place.chmod(0o700)
    for name in folders:
        if name not in there:
            (place / name).parent.mkdir(exist_ok=True)
            (made / name).rename(place / name)


def _contents(directory: Path) -> dict[str, str]:
    return {path.name: sha256_of(path) for path in directory.iterdir()}


def _card(publication: Publication) -> tuple[str | None, list[str]]:
    """The publisher's own card, if it may be published, and notes to the publisher if not."""
    if publication.card is not None:
        return _read_card(publication.card), []
    path = publication.directory / CARD
    text = _read_card(path) if path.is_file() else None
    if publication.withholding is not None and text is not None and _SEED.search(text):
        return None, [_SEED_IN_CARD]
    return text, []


def _read_card(path: Path) -> str:
    if path.stat().st_size > _CARD_BYTES:
        raise UnusableDataset(f"{path}: is larger than {_CARD_BYTES:,} bytes, too large for a card")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UnusableDataset(f"{path}: is not UTF-8 text") from error
    split_card(text)  # before anything is written
    return text


@dataclass(frozen=True, slots=True)
class Withheld:
    """The two parts of a dataset, directories in the hosted layout."""

    events: EventRange
    public: Path
    truth: Path
    #: Withheld columns by table.
    columns: Mapping[str, Sequence[str]]


def withhold(
    config: SurveyedConfig,
    events: EventRange,
    *,
    public: Path,
    truth: Path,
    progress: Progress | None = None,
) -> Withheld:
    """Write the public part of a config below ``public``, and ``events`` with their truth below ``truth``.

    Blocks. ``progress`` is called with the number of events written and the total. Raises UnusableDataset if
    a table lacks an event of the range, or its truth is already withheld.
    """
    tables = {name: EventTable(name, [s.path for s in shards]) for name, shards in config.tables.items()}
    for table in tables.values():
        table.refuse_missing(events)
    count = ProgressCount(progress, len(events) + len(config.events))
    with _writers(truth, config, tables) as complete:
        for ids, rows in blocks_of(tables, np.arange(events.start, events.stop)):
            for name, piece in in_public_order(rows).items():
                complete[name].write(piece)
            count.add(len(ids))
    in_order = {
        name: EventTable(name, sorted((truth / folder(config.name, name)).glob("*.parquet")))
        for name in tables
    }
    first, stop = np.searchsorted(config.events, [events.start, events.stop])
    with _writers(public, config, tables) as visible:
        for source, chosen in (
            (tables, config.events[:first]),
            (in_order, config.events[first:stop]),
            (tables, config.events[stop:]),
        ):
            for ids, rows in blocks_of(source, chosen):
                for name, piece in rows.items():
                    visible[name].write(without_truth(name, piece) if source is in_order else piece)
                count.add(len(ids))
            for writer in visible.values():
                writer.end_group()
    columns = {name: withheld_columns(name, table.schema.names) for name, table in tables.items()}
    return Withheld(events, public, truth, columns)


@contextmanager
def _writers(
    directory: Path, config: SurveyedConfig, tables: Mapping[str, EventTable]
) -> Iterator[dict[str, ShardWriter]]:
    """Open a writer for each table, with as many events per shard as the largest shard there is."""
    size = max(len(shard.events) for shards in config.tables.values() for shard in shards)
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(
                ShardWriter(
                    directory / folder(config.name, name),
                    "train",
                    without_notes(table.schema),
                    events_per_shard=size,
                )
            )
            for name, table in tables.items()
        }
