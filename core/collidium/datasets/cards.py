"""The metadata of a published dataset: a card for people and hubs, and a manifest for programs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from collidium.contracts.task import EventRange
from collidium.errors import UnusableDataset

CARD: Final = "README.md"
#: The file with the manifest, by which the platform also knows what it has published.
MANIFEST: Final = "collidium.json"
LICENSE: Final = "cc-by-4.0"
#: Further ones are listed in the manifest alone.
FILES_SHOWN: Final = 100
#: Key of the front matter: by config and name of a split its events, as ``START:STOP``.
SPLITS: Final = "event_splits"
#: One of so many events, the last ones, is for validation.
_VALIDATION: Final = 10
_FRONT_MATTER: Final = re.compile(r"---\r?\n(?P<yaml>.*?\r?\n)?---\r?\n", re.DOTALL)
#: In the hub's words for how many rows a dataset has.
_SIZES: Final = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
)
_MARKDOWN: Final = re.compile(r"([\\`*_{}\[\]()#+!|<>~$&])")


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """A parquet file of a published dataset."""

    #: Where it lies in the repository.
    path: str
    sha256: str
    size_bytes: int
    #: Events in it.
    rows: int


def sha256_of_bytes(content: bytes) -> str:
    """The checksum of bytes, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def front_matter(
    title: str,
    tags: Sequence[str],
    events: int,
    files: Iterable[DatasetFile],
    splits: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """The front matter of a card: title, licence, tags, size, a config for each table, splits by config."""
    return {
        "pretty_name": one_line(title),
        "license": LICENSE,
        "tags": [one_line(tag) for tag in tags],
        "task_categories": ["other"],
        "size_categories": [size_category(events)],
        "configs": configs(files),
        SPLITS: {config: dict(of) for config, of in splits.items()},
    }


def card(matter: Mapping[str, Any], body: str) -> str:
    """A whole card; names and values of the front matter have one line each, so that none can end it."""
    import yaml

    class OneLine(yaml.SafeDumper):
        def represent_str(self, data: str) -> yaml.ScalarNode:
            return self.represent_scalar("tag:yaml.org,2002:str", data, '"' if "\n" in data else None)

    OneLine.add_representer(str, OneLine.represent_str)
    text = yaml.dump(
        dict(matter),
        Dumper=OneLine,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=float("inf"),
    )
    return f"---\n{text}---\n\n{body}"


def split_card(readme: str) -> tuple[dict[str, Any], str]:
    """Front matter and body of the publisher's card. Raises UnusableDataset where it cannot be read."""
    import yaml

    match = _FRONT_MATTER.match(readme)
    if match is None:
        return {}, readme
    try:
        matter = yaml.safe_load(match["yaml"] or "") or {}
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise UnusableDataset(f"{CARD}: its front matter cannot be read as YAML") from error
    if not isinstance(matter, dict):
        raise UnusableDataset(f"{CARD}: its front matter must hold names and values")
    return matter, readme[match.end() :].lstrip("\r\n")


def splits(first: int, events: int, withheld: EventRange | None = None) -> dict[str, str]:
    """Split events in a row into ``train`` and ``validation``, the last tenth; none of them is withheld.

    Withheld events are expected at one end; of those on either side the more are taken. Too few events, and
    those all withheld, have no splits.
    """
    start, stop = first, first + events
    if withheld is not None:
        before, after = (start, min(stop, withheld.start)), (max(start, withheld.stop), stop)
        start, stop = max(before, after, key=lambda ends: ends[1] - ends[0])
    if stop - start < 2:
        return {}
    edge = stop - max((stop - start) // _VALIDATION, 1)
    return {"train": f"{start}:{edge}", "validation": f"{edge}:{stop}"}


def configs(files: Iterable[DatasetFile]) -> list[dict[str, Any]]:
    """The configs of the front matter: one for each table, named as its folder."""
    return [
        {"config_name": folder.name, "data_files": [{"split": "train", "path": f"{folder}/*.parquet"}]}
        for folder in folders(files)
    ]


def folders(files: Iterable[DatasetFile]) -> list[PurePosixPath]:
    """Where the tables lie: ``data/<channel>_pu<pileup>_<table>``."""
    return sorted({PurePosixPath(file.path).parent for file in files})


def size_category(events: int) -> str:
    """The hub's category for that many rows."""
    return next((name for limit, name in _SIZES if events < limit), "n>10M")


def file_table(files: Sequence[DatasetFile]) -> str:
    """The first files with events, sizes and checksums, and how many more there are."""
    shown = files[:FILES_SHOWN]
    rows = [(file.path, file.rows, file.size_bytes, file.sha256) for file in shown]
    more = len(files) - len(shown)
    rest = f"\nand {more:,} more.\n" if more else ""
    return f"{table(('file', 'events', 'bytes', 'sha256'), rows)}\n{rest}"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table in Markdown."""
    lines = [header, ["---"] * len(header), *([text(str(cell)) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def text(words: str) -> str:
    """Text as Markdown shows it, whatever is in it."""
    return _MARKDOWN.sub(r"\\\1", one_line(words))


def one_line(words: str) -> str:
    """Text with a space for each run of white space."""
    return " ".join(words.split())
