"""Calls about datasets and single events of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from collidium.client.answers import Answer, content, listed
from collidium.client.calls.call import Call, Credential, paging, segment
from collidium.client.events import EventData
from collidium.records import DatasetEntry, Page


def datasets(
    *, repo: str | None = None, limit: int | None = None, cursor: str | None = None
) -> Call[Page[DatasetEntry]]:
    """A page of the public datasets that may be looked at, the latest first, by their configs."""
    query = ({} if repo is None else {"repo": repo}) | paging(limit, cursor)
    return Call("GET", "/v1/datasets", listed(DatasetEntry), Credential.NONE, query=query)


def event(
    config: str,
    event_id: int,
    *,
    repo: str | None = None,
    tables: Sequence[str] | None = None,
    revision: str | None = None,
    file_format: Literal["arrow", "phoenix"] = "arrow",
) -> Call[EventData]:
    """One event of a dataset; ``.tables()`` gives its tables.

    ``repo`` may be left out where only one dataset has that config, ``tables`` for all. What made the
    hits of an event that a task is scored on is not sent.
    """
    wanted = {"repo": repo, "tables": ",".join(tables or ()), "revision": revision}
    query = {name: text for name, text in wanted.items() if text} | {"format": file_format}
    where = f"/v1/datasets/{segment(config)}/events/{event_id}"
    return Call("GET", where, _event, Credential.NONE, query=query, headers={"Accept": "*/*"})


def _event(answer: Answer) -> EventData:
    return EventData(content(answer), answer.media_type)
