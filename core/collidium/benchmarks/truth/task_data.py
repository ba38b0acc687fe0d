"""Where users get the events of a task: found on the hub when truth is imported, and shown on its card."""

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
    from collidium.settings import Settings

#: What a truth's manifest in the database has of them: ``evaluation``, ``training``.
Found = Mapping[str, Any]


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
    """What users fetch, by name; blocks.

    ``inputs`` are those of the scored ``events``, by default those of ``source``, the truth's, if that is a
    public repository. All of ``train`` is there to learn from, but for the scored events.
    Raises what :func:`~collidium.datasets.list_tables` raises, and UnusableDataset where events or tables are
    missing.
    """
    found = {}
    place = inputs or source
    if isinstance(place, HubDataset):
        with catalogue(place, cache) as shards:
            if inputs is not None or not cast(HubCatalogue, shards).repository.private:
                found["evaluation"] = _data(shards, config, card.inputs, events)
    if train is not None:
        with catalogue(train, cache) as shards:
            configs = layout.configs(shards.sizes)
            chosen = layout.choose(shards.sizes, config if config in configs else None)
            truth = [name for name in card.truth_sources if name in configs[chosen]]
            names = tuple(dict.fromkeys([*card.inputs, *truth]))
            entries = shards.tables(chosen, names)
            first = max(entry.first_event or 0 for entry in entries)
            stop = min(-1 if entry.last_event is None else entry.last_event for entry in entries) + 1
            evaluation = found.get("evaluation")
            if evaluation is not None and evaluation.repository == train.repo:
                # One repository for both: the larger part that is not scored.
                parts = (first, min(events.start, stop)), (max(events.stop, first), stop)
                first, stop = max(parts, key=lambda part: part[1] - part[0])
            if not 0 <= first < stop:
                raise UnusableDataset(
                    f"{train.repo} has no events to learn from that are known by its footers"
                )
            found["training"] = _data(shards, chosen, names, EventRange(first, stop))
    return {name: as_json(data) for name, data in found.items()}


def shown_data(found: Found, settings: Settings) -> dict[str, TaskData]:
    """The fields of a card, with the command that fetches each."""
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
