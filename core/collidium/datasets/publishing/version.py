"""A version of a dataset repository: its files, the manifest that lists them, and the card.

The manifest lists all configs of a repository, so that publishing one of them replaces only its files.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from collidium.contracts.task import EventRange
from collidium.datasets import cards
from collidium.datasets.cards import MANIFEST, DatasetFile

#: Marks a manifest whose files `collidium datasets publish` may replace.
MADE_BY: Final = "collidium datasets publish"


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """A published config."""

    name: str
    events: int
    first_event: int
    last_event: int
    files: Sequence[DatasetFile]
    #: Range of events whose truth is withheld, as ``START:STOP``, and their withheld columns by table.
    withheld: str | None = None
    withheld_columns: Mapping[str, Sequence[str]] | None = None
    #: Ranges of events whose truth is in this or an earlier version of the repository.
    opened: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    """A version of a repository."""

    files: Sequence[DatasetFile]
    manifest: bytes
    card: bytes
    #: Paths of the previous version that this one lacks.
    removed: Sequence[str]


def read_manifest(content: bytes) -> dict[str, ConfigFiles] | None:
    """Parse a manifest; None if ``publish`` did not write it."""
    try:
        document = json.loads(content)
        if document["made_by"] != MADE_BY:
            return None
        configs = {
            name: ConfigFiles(name, **config | {"files": [DatasetFile(**file) for file in config["files"]]})
            for name, config in document["configs"].items()
        }
        for config in configs.values():
            for events in (*config.opened, *([config.withheld] if config.withheld is not None else [])):
                EventRange.parse(events)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return configs


def make_version(
    repo: str,
    new: Sequence[ConfigFiles],
    old: Mapping[str, ConfigFiles],
    *,
    readme: str | None,
    platform_tag: str,
    hub: str,
) -> DatasetVersion:
    """Create the version that adds the ``new`` configs to the ``old`` ones, or replaces them.

    ``readme`` is the publisher's own card, ``hub`` the hub's address. Raises UnusableDataset if the front
    matter of the card is invalid.
    """
    configs = dict(sorted({**old, **{config.name: config for config in new}}.items()))
    files = [file for config in configs.values() for file in config.files]
    before = {file.path for config in old.values() for file in config.files}
    example = cards.example(hub, repo, cards.folders(files)[0].name)
    card = _card(repo, configs, files, readme, platform_tag, example).encode()
    document = {
        "made_by": MADE_BY,
        "card_sha256": hashlib.sha256(card).hexdigest(),
        "configs": {name: _without_name(config) for name, config in configs.items()},
    }
    manifest = (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
    return DatasetVersion(files, manifest, card, sorted(before - {file.path for file in files}))


def _without_name(config: ConfigFiles) -> dict[str, Any]:
    document = asdict(config)
    del document["name"]
    if config.withheld_columns is not None:
        document["withheld_columns"] = {table: list(of) for table, of in config.withheld_columns.items()}
    return document


# -- the card -------------------------------------------------------------------------------------------


def _card(
    repo: str,
    configs: Mapping[str, ConfigFiles],
    files: Sequence[DatasetFile],
    readme: str | None,
    platform_tag: str,
    example: str,
) -> str:
    title = repo.partition("/")[2]
    channels = sorted({name.rpartition("_pu")[0] for name in configs})
    tags = [platform_tag, "particle-physics", *channels]
    events = sum(config.events for config in configs.values())
    own, body = ({}, _body(title, configs, files, example)) if readme is None else cards.split_card(readme)
    splits = {name: _splits(own, config) for name, config in configs.items()}
    matter = cards.front_matter(title, tags, events, files, splits)
    ours = {key: matter[key] for key in ("size_categories", "configs", cards.SPLITS)}
    return cards.card({**matter, **own, **ours, "tags": _tags(own.get("tags"), tags)}, body)


def _splits(own: Mapping[str, Any], config: ConfigFiles) -> Mapping[str, str]:
    """The publisher's own splits of a config; the default if there are none or they have withheld events."""
    withheld = None if config.withheld is None else EventRange.parse(config.withheld)
    try:
        named = {str(name): str(events) for name, events in own[cards.SPLITS][config.name].items()}
        ranges = list(map(EventRange.parse, named.values()))
    except (AttributeError, KeyError, TypeError, ValueError):
        named, ranges = {}, []
    if ranges and not any(withheld and events.overlaps(withheld) for events in ranges):
        return named
    return cards.splits(config.first_event, config.events, withheld)


def _tags(own: object, ours: Sequence[str]) -> list[str]:
    theirs = [own] if isinstance(own, str) else own if isinstance(own, list) else []
    return list(dict.fromkeys([*ours[:1], *(str(tag) for tag in theirs), *ours]))


def _body(title: str, configs: Mapping[str, ConfigFiles], files: Sequence[DatasetFile], example: str) -> str:
    rows = [
        (
            name,
            config.events,
            f"{config.first_event} to {config.last_event}" if config.events else "none",
            ", ".join(_tables(config)),
            sum(file.size_bytes for file in config.files),
        )
        for name, config in configs.items()
    ]
    withheld = "".join(_withheld(config) for config in configs.values() if config.withheld)
    return f"""# {cards.escaped(title)}

Collider events. Each row is one event; every column but `event_id` holds a list, with one entry for each
particle, hit, deposit or track of the event.

{cards.table(("events of", "number", "ids", "tables", "bytes"), rows)}

Each table is a config of its own:

{example}
{withheld}## Files

{cards.file_table(files)}
All of it is in `{MANIFEST}` for programs.
"""


def _withheld(config: ConfigFiles) -> str:
    rows = [(table, ", ".join(columns)) for table, columns in (config.withheld_columns or {}).items()]
    return f"""## Withheld truth of {cards.escaped(config.name)}

Events {config.withheld} are for a benchmark: what they were made of is withheld. These columns have no values
there, hits have no order that means anything, and `hit_id` counts them in the order in which they stand.

{cards.table(("table", "withheld columns"), rows)}

"""


def _tables(config: ConfigFiles) -> list[str]:
    folders = cards.folders(config.files)
    return [folder.name.removeprefix(f"{config.name}_") for folder in folders]
