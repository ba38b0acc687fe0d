"""Splits on cards, local and on a hub, contain no withheld events."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.datasets.events import CONFIG, tables_of, write
from tests.hub import HubServer, hub

from collidium.contracts.task import EventRange
from collidium.datasets import cards
from collidium.datasets.publishing.preparing import Publication, Withholding
from collidium.datasets.publishing.publication import publish
from collidium.errors import UnusableDataset
from collidium.hub.client import Hub
from collidium.learning import EventStream, read_splits

__all__ = ["hub"]


@given(st.integers(0, 30), st.integers(0, 60), st.integers(0, 60), st.integers(1, 60))
def test_splits_share_no_event_and_none_is_withheld(first: int, events: int, start: int, size: int) -> None:
    withheld = EventRange(start, start + size)
    splits = {name: EventRange.parse(of) for name, of in cards.splits(first, events, withheld).items()}
    seen = [event for of in splits.values() for event in range(of.start, of.stop)]
    assert len(seen) == len(set(seen))
    assert not any(event in withheld or not first <= event < first + events for event in seen)


def test_a_directory_names_its_splits_in_its_card(tmp_path: Path) -> None:
    write(tmp_path, tables_of(range(20)))
    assert read_splits(tmp_path) == {}
    (tmp_path / cards.CARD).write_text(
        cards.card({cards.SPLITS: {CONFIG: cards.splits(0, 20)}}, "# Events\n")
    )
    assert read_splits(tmp_path, CONFIG) == {"train": EventRange(0, 18), "validation": EventRange(18, 20)}
    stream = EventStream(tmp_path, CONFIG, "tracks", ["d0"], "validation")
    assert [batch.event_id.tolist() for batch in stream] == [[18, 19]]


def test_splits_that_are_none_are_named(tmp_path: Path) -> None:
    write(tmp_path, tables_of(range(2)))
    (tmp_path / cards.CARD).write_text(cards.card({cards.SPLITS: {CONFIG: {"train": "first"}}}, ""))
    with pytest.raises(UnusableDataset, match="event_splits"):
        read_splits(tmp_path)


async def test_a_hub_names_splits_without_withheld_events(hub: HubServer, tmp_path: Path) -> None:
    """A publisher's own splits stay, unless with withheld events; streams read by the cache."""
    directory = write(tmp_path / "made", tables_of(range(20)))
    card = cards.card({cards.SPLITS: {CONFIG: {"train": "0:4", "validation": "10:18"}}}, "# Mine\n")
    (directory / cards.CARD).write_text(card)
    token = hub.token("grace")
    at = Hub(hub.url, token)
    for name, withheld in (("open", None), ("closed", EventRange(16, 20))):
        withholding = withheld and Withholding(withheld, tmp_path / "truth")
        own = tmp_path / "card.md"
        own.write_text(card)
        await publish(Publication(directory, repo=name, withholding=withholding, card=own), at)

    def splits(name: str) -> dict[str, str]:
        found = read_splits(f"grace/{name}", endpoint=hub.url, token="")
        return {name: str(events) for name, events in found.items()}

    assert splits("open") == {"train": "0:4", "validation": "10:18"}
    assert splits("closed") == {"train": "0:15", "validation": "15:16"}
    stream = EventStream(
        "grace/closed",
        CONFIG,
        ["tracks", "particles"],
        {"tracks": ["d0", "hit_ids"], "particles": ["px"]},
        "train",
        shuffle=True,
        endpoint=hub.url,
        token="",
        cache=tmp_path / "cache",
    )
    batches = list(stream)
    assert sorted(int(event) for batch in batches for event in batch.event_id) == list(range(15))
    local = EventStream(directory, CONFIG, "tracks", ["d0"], "0:15")
    for batch in local:
        for number, event in enumerate(batch.event_id):
            (where,) = (batches[0].event_id == event).nonzero()[0]
            assert batches[0]["tracks.d0"][where].tolist() == batch["d0"][number].tolist()
