"""The front matter of a README, and the repository's tags in it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # imported with the first card: a fiftieth of a server's start
    import yaml

#: Front matter longer than this is not read, nor more than so many tags.
CARD_BYTES: Final = 64 * 1024
TAGS: Final = 100
TAG_LENGTH: Final = 100


class BadCard(ValueError):
    """The front matter cannot be read; the message says why."""


@cache
def _loader() -> type[yaml.SafeLoader]:
    """YAML without aliases, by which a few lines can expand to fill the memory."""
    import yaml

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                raise BadCard("aliases are not taken")
            return super().compose_node(parent, index)

    return Loader


def read_card(readme: str) -> dict[str, Any]:
    """The front matter as plain JSON; empty when there is none. Raises BadCard."""
    lines = readme.lstrip("\ufeff").replace("\r\n", "\n")
    if not lines.startswith("---\n"):
        return {}
    text, end, _ = (lines[3:] + "\n").partition("\n---\n")
    if not end:
        return {}
    import yaml

    if len(text) > CARD_BYTES:
        raise BadCard(f"it is longer than {CARD_BYTES:,} bytes")
    try:
        card = yaml.load(text, Loader=_loader())  # noqa: S506 -- a SafeLoader
        plain = json.loads(json.dumps(card, default=str, allow_nan=False))
    except (yaml.YAMLError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise BadCard(str(error) or "it is nested too deeply") from None
    if plain is None:
        return {}
    if not isinstance(plain, dict):
        raise BadCard("it is not a mapping")
    return plain


def tags_of(card: dict[str, Any]) -> list[str]:
    """The tags by which the repository is found."""
    tags = [*_words(card.get("tags")), *_words(card.get("library_name")), *_words(card.get("pipeline_tag"))]
    tags += [f"license:{word}" for word in _words(card.get("license"))]
    tags += [f"dataset:{word}" for word in _words(card.get("datasets"))]
    tags += _words(card.get("language"))
    return list(dict.fromkeys(tags))[:TAGS]


def _words(value: Any) -> Iterable[str]:
    values = value if isinstance(value, list) else [value]
    return [
        word
        for word in values
        if isinstance(word, str) and 0 < len(word) <= TAG_LENGTH and word.isprintable()
    ]
