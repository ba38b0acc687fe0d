"""The description of a published dataset: a card for people and a manifest for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from collidium.datasets import cards
from collidium.datasets.cards import MANIFEST, DatasetFile
from collidium.order import Order

__all__ = ["MANIFEST", "Provenance", "dataset_card", "is_manifest_of", "manifest"]


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a dataset comes from, and what is in it."""

    request_id: str
    order: Order
    pipeline_version: str
    platform_tag: str
    files: Sequence[DatasetFile]
    #: Of the pipeline, for the card: generator, versions, cross section.
    facts: Mapping[str, str] = field(default_factory=dict)


def dataset_card(provenance: Provenance) -> str:
    """The ``README.md`` of the dataset's repository: front matter that the hub reads, and tables."""
    order = provenance.order
    facts = {
        "channel": order.channel,
        "events": order.events,
        "pileup": order.pileup,
        "seed": order.seed,
        "systematic variation": order.vary or "none",
        "pipeline": provenance.pipeline_version,
        **provenance.facts,
        "request": provenance.request_id,
    }
    tags = [provenance.platform_tag, "particle-physics", "simulation", order.channel]
    body = f"""# {cards.text(_title(order))}

Collider events simulated to order: hard scatter and parton shower, detector simulation, digitisation and
reconstruction. Each row is one event; every column but `event_id` holds a list, with one entry for each
particle, hit or track of the event.

{cards.table(("", ""), facts.items())}

Each table is a config of its own:

```python
from datasets import load_dataset

load_dataset("<this repository>", "{cards.folders(provenance.files)[0].name}", split="train")
```

## Files

{cards.file_table(provenance.files)}
All of it is in `{MANIFEST}` for programs. The same channel, events, pileup, seed and pipeline give the same
events again.
"""
    splits = {order.config: cards.splits(0, order.events)}
    return cards.card(cards.front_matter(_title(order), tags, order.events, provenance.files, splits), body)


def manifest(provenance: Provenance) -> bytes:
    """The content of ``collidium.json``: everything in the card, as JSON."""
    document = {
        "request_id": provenance.request_id,
        **asdict(provenance.order),
        "config": provenance.order.config,
        "pipeline_version": provenance.pipeline_version,
        "files": [asdict(file) for file in provenance.files],
    }
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()


def is_manifest_of(content: bytes, provenance: Provenance) -> bool:
    """Whether a manifest describes this request and exactly these files."""
    try:
        document = json.loads(content)
        files = {file["path"]: file["sha256"] for file in document["files"]}
        request_id = document["request_id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    return bool(
        request_id == provenance.request_id and files == {file.path: file.sha256 for file in provenance.files}
    )


def _title(order: Order) -> str:
    events = "one event" if order.events == 1 else f"{order.events:,} events"
    return f"{cards.one_line(order.channel)}: {events} at pileup {order.pileup}"
