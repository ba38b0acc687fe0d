"""A challenge that is made with events of its own: not listed before its truth and baselines are there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collidium.benchmarks import challenge_changes, challenges
from collidium.datasets import layout
from collidium.datasets.access import catalogue
from collidium.datasets.catalogue import HubCatalogue
from collidium.errors import InvalidInput
from collidium.hub.sources import HubDataset, locate
from collidium.seeding.plan import ChallengeEvents, Source

if TYPE_CHECKING:
    from collidium.seeding.steps import Seeding

#: The actor in the audit log.
_ACTOR: Final = "command"


@dataclass(frozen=True, slots=True)
class Draft:
    """A challenge to be made: what operators set of it, and its events."""

    name: str
    fields: Mapping[str, Any]
    events: ChallengeEvents


def find_source(events: ChallengeEvents, hub: str, cache: Path) -> tuple[ChallengeEvents, Source]:
    """Return where the events of ``dataset`` are, and its commit and config in ``events``; blocks.

    Raises InvalidInput for a public repository and for fewer events than are wanted, and what
    :func:`~collidium.datasets.list_tables` raises.
    """
    repo, _, revision = events.dataset.partition("@")
    place = locate(repo, endpoint=hub, revision=revision or None)
    with catalogue(place, cache) as found:
        config = layout.choose(found.sizes, events.config or None)
        count = found.tables(config)[0].events
        if isinstance(found, HubCatalogue) and isinstance(place, HubDataset):
            if not found.repository.private:
                raise InvalidInput(f"{repo} is public: everybody can read the truth of its events")
            place = replace(place, revision=found.repository.commit)
            repo = f"{repo}@{place.revision}"
    if count is not None and count < events.train + events.evaluated:
        raise InvalidInput(f"{repo} has {count} events, not {events.train} and {events.evaluated}")
    return replace(events, dataset=repo, config=config), place


async def problems_of(seeding: Seeding, draft: Draft) -> AsyncIterator[str]:
    """Yield what stands against making the challenge; only reads."""
    begun, row = seeding.state.challenges.get(draft.name), await challenges.find(draft.name)
    if begun is not None and begun != asdict(draft.events):
        options = ", ".join(f"{name} {value}" for name, value in begun.items() if value not in ("", None))
        yield f"{draft.name} was begun with {options}: go on with these, or choose another name"
    elif begun is None and row is not None:
        yield f"there is a challenge {draft.name} already"
    if row is None:
        for problem in challenge_changes.problems_of_new(draft.name, draft.fields):
            yield f"{problem['field']}: {problem['detail']}"


async def is_prepared(seeding: Seeding, draft: Draft) -> bool:
    """Whether the challenge is there, listed or not."""
    return draft.name in seeding.state.challenges and await challenges.find(draft.name) is not None


async def prepare(seeding: Seeding, draft: Draft) -> None:
    """Make the challenge, without truth and not listed."""
    seeding.state.challenges[draft.name] = asdict(draft.events)
    seeding.state.save()
    await challenge_changes.create(
        *(seeding.platform, draft.name, draft.events.task, draft.fields),
        draft=True,
        actor=_ACTOR,
        http_request_id="",
    )


async def set_truth(draft: Draft, version: str) -> None:
    """Score against this truth from now on, by the part that is public."""
    await challenge_changes.set_truth(draft.name, version, draft.events.public_percent)


async def is_listed(draft: Draft) -> bool:
    """Whether all can see it."""
    row = await challenges.find(draft.name)
    return row is not None and row.listed


async def publish(draft: Draft) -> None:
    """List it, and so open it, or let it open at its date."""
    await challenge_changes.publish(draft.name, actor=_ACTOR)
