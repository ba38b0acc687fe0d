"""What a published dataset says of itself: a card for people and a manifest for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any, Final

import yaml

from collidium.simulations.orders import Order
from collidium.simulations.output import OutputFile

#: Also how the platform knows that it has published a request.
MANIFEST: Final = "collidium.json"
LICENSE: Final = "cc-by-4.0"
#: Further ones are told by the manifest alone.
FILES_SHOWN: Final = 100
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
class Provenance:
    """Where a dataset comes from, and what is in it."""

    request_id: str
    order: Order
    pipeline_version: str
    platform_tag: str
    files: Sequence[OutputFile]


def dataset_card(provenance: Provenance) -> str:
    """The ``README.md`` of the dataset's repository: front matter that the hub reads, and tables."""
    # Values of one line each: none of them can hold the line that ends the front matter.
    front_matter = yaml.safe_dump(
        _front_matter(provenance),
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=float("inf"),
    )
    order = provenance.order
    facts = {
        "channel": order.channel,
        "events": order.events,
        "pileup": order.pileup,
        "seed": order.seed,
        "pipeline": provenance.pipeline_version,
        "request": provenance.request_id,
    }
    shown = provenance.files[:FILES_SHOWN]
    files = [(file.path, file.rows, file.size_bytes, file.sha256) for file in shown]
    more = len(provenance.files) - len(shown)
    rest = f"\nand {more:,} more.\n" if more else ""
    return f"""---
{front_matter}---

# {_text(_title(order))}

Collider events simulated to order: hard scatter and parton shower, detector simulation, digitisation and
reconstruction. Each row is one event; every column but `event_id` holds a list, with one entry for each
particle, hit or track of the event.

{_table(("", ""), facts.items())}

Each table is a config of its own:

```python
from datasets import load_dataset

load_dataset("<this repository>", "{_folders(provenance)[0].name}", split="train")
```

## Files

{_table(("file", "events", "bytes", "sha256"), files)}
{rest}
All of it is in `{MANIFEST}` for programs. The same channel, events, pileup, seed and pipeline give the same
events again.
"""


def manifest(provenance: Provenance) -> bytes:
    """The content of ``collidium.json``: everything that the card tells, as JSON."""
    document = {
        "request_id": provenance.request_id,
        **asdict(provenance.order),
        "config": provenance.order.config,
        "pipeline_version": provenance.pipeline_version,
        "files": [asdict(file) for file in provenance.files],
    }
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def is_manifest_of(content: bytes, provenance: Provenance) -> bool:
    """Whether a manifest tells of this request and exactly these files."""
    try:
        document = json.loads(content)
        files = {file["path"]: file["sha256"] for file in document["files"]}
        request_id = document["request_id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    return bool(
        request_id == provenance.request_id and files == {file.path: file.sha256 for file in provenance.files}
    )


def _front_matter(provenance: Provenance) -> dict[str, Any]:
    return {
        "pretty_name": _title(provenance.order),
        "license": LICENSE,
        "tags": [provenance.platform_tag, "particle-physics", "simulation", _line(provenance.order.channel)],
        "task_categories": ["other"],
        "size_categories": [_size(provenance.order.events)],
        "configs": [
            {"config_name": folder.name, "data_files": [{"split": "train", "path": f"{folder}/*.parquet"}]}
            for folder in _folders(provenance)
        ],
    }


def _folders(provenance: Provenance) -> list[PurePosixPath]:
    """Where the tables lie: ``data/<channel>_pu<pileup>_<table>``."""
    return sorted({PurePosixPath(file.path).parent for file in provenance.files})


def _title(order: Order) -> str:
    events = "one event" if order.events == 1 else f"{order.events:,} events"
    return f"{_line(order.channel)}: {events} at pileup {order.pileup}"


def _size(events: int) -> str:
    return next((name for limit, name in _SIZES if events < limit), "n>10M")


def _table(header: Sequence[str], rows: Any) -> str:
    lines = [header, ["---"] * len(header), *([_text(str(cell)) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _text(text: str) -> str:
    """Text as Markdown shows it, whatever is in it."""
    return _MARKDOWN.sub(r"\\\1", _line(text))


def _line(text: str) -> str:
    return " ".join(text.split())
