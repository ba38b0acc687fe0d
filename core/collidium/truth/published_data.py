"""The public datasets with the events of a truth.

Where they are published is looked up when the truth is imported: commit, size and presence are facts then.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from collidium.contracts.task import Card, EventRange
from collidium.datasets import layout
from collidium.datasets.access import catalogue
from collidium.datasets.catalogue import HubCatalogue
from collidium.errors import InvalidInput, UnusableDataset
from collidium.hub.sources import HubDataset, locate
from collidium.records import EvalEvents, TaskData, as_json

if TYPE_CHECKING:
    from collidium.platform import Platform
    from collidium.settings import Settings

#: Public datasets of a truth, as in its manifest: ``evaluation``, ``training``.
Found = Mapping[str, Any]


def hub_cache(platform: Platform) -> Path:
    """Return the directory of what is downloaded to import truth."""
    return platform.settings.data_dir / "cache" / "hub"


def located(text: str, settings: Settings, token: str | None) -> HubDataset:
    """``NAMESPACE/NAME`` or ``NAMESPACE/NAME@REVISION`` on the server's hub; raises InvalidInput."""
    repo, _, revision = text.partition("@")
    place = locate(repo, endpoint=settings.hub, revision=revision or None, token=token or "")
    if isinstance(place, Path):
        raise InvalidInput(f"{text}: is a directory here; users fetch events from a repository of the hub")
    return place


def find_data(
    card: Card,
    source: Path | HubDataset,
    inputs: HubDataset | None,
    train: HubDataset | None,
    *,
    config: str | None,
    events: EventRange,
    cache: Path,
) -> Found:
    """Find the public datasets of a truth; blocks.

    ``inputs`` has the inputs of the scored ``events``; by default it is ``source``, if that is a public
    repository. ``train`` has training events; scored events are left out.
    Raises as :func:`~collidium.datasets.list_tables`, and UnusableDataset if events or tables are missing.
    """
    found = {}
    place = inputs or source
    if isinstance(place, HubDataset):
        with catalogue(place, cache, current=True) as shards:
            if inputs is not None or not cast(HubCatalogue, shards).repository.private:
                found["evaluation"] = _data(shards, config, card.inputs, events)
    if train is not None:
        with catalogue(train, cache, current=True) as shards:
            configs = layout.configs(shards.sizes)
            chosen = layout.choose(shards.sizes, config if config in configs else None)
            truth = [name for name in card.truth_sources if name in configs[chosen]]
            names = tuple(dict.fromkeys([*card.inputs, *truth]))
            entries = shards.tables(chosen, names)
            first = max(entry.first_event or 0 for entry in entries)
            stop = min(-1 if entry.last_event is None else entry.last_event for entry in entries) + 1
            evaluation = found.get("evaluation")
            if evaluation is not None and evaluation.repository == train.repo:
                # The same repository has both: take the larger range that is not scored.
                parts = (first, min(events.start, stop)), (max(events.stop, first), stop)
                first, stop = max(parts, key=lambda part: part[1] - part[0])
            if not 0 <= first < stop:
                raise UnusableDataset(f"{train.repo}: its footers record no range of events for training")
            found["training"] = _data(shards, chosen, names, EventRange(first, stop))
    return {name: as_json(data) for name, data in found.items()}


def shown_data(found: Found, settings: Settings) -> dict[str, TaskData]:
    """The datasets as fields of a card, each with the command that downloads it."""
    data = msgspec.convert(found, dict[str, TaskData])
    return {f"{name}_data": _with_command(one, settings.hub_url or None) for name, one in data.items()}


def _data(shards: Any, config: str | None, tables: Sequence[str], events: EventRange) -> TaskData:
    repository = cast(HubCatalogue, shards).repository
    chosen = layout.choose(shards.sizes, config)
    paths = {path for table in tables for path in shards.holding(table, chosen, events)}
    return TaskData(
        repository=repository.repo,
        revision=repository.commit,
        config=chosen,
        tables=tuple(tables),
        events=EvalEvents(events.start, events.stop),
        bytes=sum(shards.sizes[path] for path in paths),
    )


def _with_command(data: TaskData, hub: str | None) -> TaskData:
    options = {
        "--config": data.config,
        "--tables": ",".join(data.tables),
        "--events": f"{data.events.start}:{data.events.stop}",
        "--revision": data.revision,
        "--hub": hub,
    }
    given = [text for option, value in options.items() if value for text in (option, value)]
    command = shlex.join(["collidium", "datasets", "download", data.repository, *given])
    return msgspec.structs.replace(data, hub=hub, download=command)
