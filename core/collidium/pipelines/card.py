"""What a dataset made on this machine says of itself: the card that stands beside its tables."""

from __future__ import annotations

from collections.abc import Sequence

from collidium import __version__
from collidium.datasets import cards
from collidium.datasets.cards import DatasetFile
from collidium.pipelines.production import Production


def dataset_card(production: Production, files: Sequence[DatasetFile]) -> str:
    """The ``README.md``: front matter that a hub reads, what was ordered, and by what it was made."""
    order, pipeline = production.order, production.pipeline
    events = production.events
    facts = {
        "channel": order.channel,
        "events": order.events,
        "event ids": f"{events.start} to {events.stop - 1}",
        "pileup": order.pileup,
        "seed": order.seed,
        "pipeline": f"{pipeline.name}, version {pipeline.version}",
        **{name: fact for name, fact in pipeline.facts.items() if name.lower() != "pipeline"},
        "made with": f"Collidium {__version__}",
    }
    generated = (pipeline.channels or {}).get(order.channel)
    number = "one event" if order.events == 1 else f"{order.events:,} events"
    title = f"{order.channel}: {number} at pileup {order.pileup}"
    tags = ["collidium", "particle-physics", "simulation", order.channel]
    told = f"Collision events, simulated by the pipeline {pipeline.name}: {pipeline.title}."
    told += f" Generated: {generated}." if generated else ""
    body = f"""# {cards.text(title)}

{cards.text(told)} Each row is one
event; every column but `event_id` holds a list, with one entry for each particle, hit, deposit or track.

{cards.table(("", ""), facts.items())}

The same channel, pileup, seed and version of the pipeline give the same events again, each by its id.

## Files

{cards.file_table(files)}"""
    return cards.card(cards.front_matter(title, tags, order.events, files), body)
