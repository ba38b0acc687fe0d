"""The dataset card (README.md with YAML front matter) and its parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from collidium.contracts.task import EventRange
from collidium.errors import UnusableDataset
from collidium.hub.sources import PUBLIC_HUB

CARD: Final = "README.md"
#: Machine-readable list of what the platform published in a repository.
MANIFEST: Final = "collidium.json"
LICENSE: Final = "cc-by-4.0"
#: Maximum number of files in the card's table; the manifest lists all of them.
FILES_SHOWN: Final = 100
#: Front matter key: config -> name of a split -> its events as ``START:STOP``.
SPLITS: Final = "event_splits"
#: One event in so many is for validation.
_VALIDATION: Final = 10
_FRONT_MATTER: Final = re.compile(r"---\r?\n(?P<yaml>.*?\r?\n)?---\r?\n", re.DOTALL)
#: The hub's size categories, by exclusive upper limit of the number of rows.
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

    #: Path in the repository.
    path: str
    sha256: str
    size_bytes: int
    #: Number of events.
    rows: int


def front_matter(
    title: str,
    tags: Sequence[str],
    events: int,
    files: Iterable[DatasetFile],
    splits: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """Build the front matter of a card, with one config for each table.

    Each table is one of the hub's configs, named as its folder; ``splits`` maps our configs to their splits.
    """
    return {
        "pretty_name": single_line(title),
        "license": LICENSE,
        "tags": [single_line(tag) for tag in tags],
        "task_categories": ["other"],
        "size_categories": [next((name for limit, name in _SIZES if events < limit), "n>10M")],
        "configs": [
            {"config_name": folder.name, "data_files": [{"split": "train", "path": f"{folder}/*.parquet"}]}
            for folder in folders(files)
        ],
        SPLITS: {config: dict(of) for config, of in splits.items()},
    }


def card(matter: Mapping[str, Any], body: str) -> str:
    """Render a card. Strings with line breaks are quoted, so that no value can end the front matter."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def represent_str(self, data: str) -> yaml.ScalarNode:
            return self.represent_scalar("tag:yaml.org,2002:str", data, '"' if "\n" in data else None)

    Dumper.add_representer(str, Dumper.represent_str)
    text = yaml.dump(
        dict(matter),
        Dumper=Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=float("inf"),
    )
    return f"---\n{text}---\n\n{body}"


def split_card(readme: str) -> tuple[dict[str, Any], str]:
    """Split a card into front matter and body. Raises UnusableDataset if the front matter is invalid."""
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
    """Split consecutive events into ``train`` and ``validation``, the last tenth.

    Withheld events are in neither: the longer of the ranges before and after them is split. With fewer than
    two events there are no splits.
    """
    start, stop = first, first + events
    if withheld is not None:
        before, after = (start, min(stop, withheld.start)), (max(start, withheld.stop), stop)
        start, stop = max(before, after, key=lambda ends: ends[1] - ends[0])
    if stop - start < 2:
        return {}
    edge = stop - max((stop - start) // _VALIDATION, 1)
    return {"train": f"{start}:{edge}", "validation": f"{edge}:{stop}"}


def example(hub: str, repo: str, config: str) -> str:
    """The code that loads a table of a repository from its hub, which a card shows."""
    named = f'import os\n\nos.environ["HF_ENDPOINT"] = "{hub}"  # before the import\n'
    elsewhere = "" if hub == PUBLIC_HUB else named
    return f"""```python
{elsewhere}from datasets import load_dataset

load_dataset("{repo}", "{config}", split="train")
```
"""


def folders(files: Iterable[DatasetFile]) -> list[PurePosixPath]:
    """The folders of the tables: ``data/<channel>_pu<pileup>_<table>``."""
    return sorted({PurePosixPath(file.path).parent for file in files})


def file_table(files: Sequence[DatasetFile]) -> str:
    """A Markdown table of the first files, and the number of further ones."""
    shown = files[:FILES_SHOWN]
    rows = [(file.path, file.rows, file.size_bytes, file.sha256) for file in shown]
    more = len(files) - len(shown)
    rest = f"\nand {more:,} more.\n" if more else ""
    return f"{table(('file', 'events', 'bytes', 'sha256'), rows)}\n{rest}"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; cells are escaped."""
    lines = [header, ["---"] * len(header), *([escaped(str(cell)) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def escaped(text: str) -> str:
    """Text on one line with Markdown's special characters escaped."""
    return _MARKDOWN.sub(r"\\\1", single_line(text))


def single_line(text: str) -> str:
    """Replace each run of white space by a space."""
    return " ".join(text.split())
