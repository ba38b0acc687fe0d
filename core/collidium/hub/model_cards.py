"""Models as a hub lists them, validated and sanitised for display: the hub's users write them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from collidium.contracts.identity import USERNAME
from collidium.records import HubModel

#: Characters of a tag or a library's name, of a description, and tags of one model; the rest is left out.
TAG_LENGTH: Final = 100
DESCRIPTION_LENGTH: Final = 300
TAGS: Final = 50

_REPO: Final = re.compile(f"{USERNAME.pattern}/{USERNAME.pattern}")
_TASK: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: Numbers beyond these lose digits in JSON.
_LARGEST_COUNT: Final = 2**53


def read_models(items: object, hub: str, platform_tag: str) -> tuple[HubModel, ...]:
    """The public models with the tag among those of a hub's list. Raises ValueError for what is no list."""
    if not isinstance(items, list):
        raise ValueError("no list")
    found = (_model(item, hub, platform_tag) for item in items if isinstance(item, dict))
    return tuple(model for model in found if model is not None)


def task_prefix(platform_tag: str) -> str:
    """The prefix of the tags that name the benchmark tasks of a model."""
    return f"{platform_tag}-task:"


def _model(item: dict[str, Any], hub: str, platform_tag: str) -> HubModel | None:
    repo, tags = item.get("id"), _tags(item.get("tags"))
    # What the hub should not have listed is not shown either.
    hidden = item.get("private") or item.get("disabled") or platform_tag not in tags
    if hidden or not (isinstance(repo, str) and _REPO.fullmatch(repo)):
        return None
    card = item.get("cardData")
    prefix = task_prefix(platform_tag)
    return HubModel(
        model_repo=repo,
        author=repo.partition("/")[0],
        updated_at=_moment(item.get("lastModified")),
        tags=tuple(tag for tag in tags if tag != platform_tag and not tag.startswith(prefix)),
        tasks=tuple(_tasks(tags, prefix)),
        description=_line(card.get("description"), DESCRIPTION_LENGTH) if isinstance(card, dict) else None,
        library=_line(item.get("library_name"), TAG_LENGTH),
        likes=_count(item.get("likes")),
        downloads=_count(item.get("downloads")),
        url=f"{hub}/{repo}",
    )


def _tags(value: object) -> Sequence[str]:
    lines = (_line(tag, TAG_LENGTH) for tag in value) if isinstance(value, list) else ()
    return list(dict.fromkeys(tag for tag in lines if tag))[:TAGS]


def _tasks(tags: Sequence[str], prefix: str) -> Iterator[str]:
    for tag in tags:
        if tag.startswith(prefix) and _TASK.fullmatch(name := tag.removeprefix(prefix)):
            yield name


def _line(value: object, longest: int) -> str | None:
    """Text in one line, without characters that are not seen but change what is."""
    if not isinstance(value, str):
        return None
    # No more than could end up in the line is looked at: a card may be megabytes.
    shown = (" " if c.isspace() else c for c in value[: 4 * longest] if c.isspace() or _is_shown(c))
    line = " ".join("".join(shown).split())
    return f"{line[: longest - 1]}…" if len(line) > longest else line or None


def _is_shown(character: str) -> bool:
    # Control characters, such that turn the direction of text, halves of characters, private ones.
    return unicodedata.category(character)[0] != "C"


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return moment.astimezone(UTC) if moment and moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _count(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _LARGEST_COUNT else None
