"""Which events are for training and which for validation, as a dataset's card has it."""

from __future__ import annotations

from typing import Any

from collidium.contracts.task import EventRange
from collidium.datasets import layout
from collidium.datasets.access import Source, catalogue
from collidium.datasets.cards import SPLITS, split_card
from collidium.errors import UnusableDataset
from collidium.hub.sources import locate


def read_splits(
    source: Source,
    config: str | None = None,
    *,
    endpoint: str | None = None,
    revision: str | None = None,
    token: str | None = None,
) -> dict[str, EventRange]:
    """Return the splits that the card of a dataset names.

    Parameters
    ----------
    source, config, endpoint, revision, token
        As for :func:`~collidium.datasets.download`.

    Returns
    -------
    dict of str to EventRange
        ``train`` and ``validation``, in the cards of this platform; nothing where the card names none. Events
        whose truth is withheld are in no split.

    Raises
    ------
    UnusableDataset
        For a card that cannot be read.
    CollidiumError
        As :func:`~collidium.datasets.download`.
    """
    with catalogue(locate(source, endpoint=endpoint, revision=revision, token=token)) as found:
        chosen = layout.choose(found.sizes, config)
        named: Any = split_card(found.card())[0].get(SPLITS) or {}
    try:
        return {name: EventRange.parse(events) for name, events in (named.get(chosen) or {}).items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise UnusableDataset(
            f"the card's {SPLITS} are no ranges of events by config and name: {error}"
        ) from error
