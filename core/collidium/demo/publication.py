"""Publishes the five events on a hub as a benchmark's host would: the eval events without their truth."""

from __future__ import annotations

import asyncio
from pathlib import Path

from collidium.contracts.task import EventRange
from collidium.datasets.hub_client import Hub
from collidium.datasets.publishing.publication import Publication, Withholding
from collidium.datasets.publishing.publication import publish as publish_dataset


def publish(
    events: Path, repo: str, config: str, evaluation: EventRange, truth: Path, *, endpoint: str, token: str
) -> str:
    """Make dataset ``repo`` on the hub from a directory of tables; returns the commit.

    The truth of the events to be scored goes to the directory ``truth``.
    """
    publication = Publication(
        events,
        repo,
        config=config,
        message="Five real events",
        card=events.parent / "README.md",
        withholding=Withholding(evaluation, truth),
    )
    return asyncio.run(publish_dataset(publication, Hub(endpoint, token))).revision
