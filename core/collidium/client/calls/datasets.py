"""Calls about datasets and single events of them."""

from __future__ import annotations

from collections.abc import Sequence

from collidium.client.answers import Answer, content, listed
from collidium.client.calls.call import Call, Credential, paging, segment
from collidium.client.events import EventData
from collidium.records import DatasetEntry, Page


def datasets(repo: str | None, limit: int | None, cursor: str | None) -> Call[Page[DatasetEntry]]:
    query = ({} if repo is None else {"repo": repo}) | paging(limit, cursor)
    return Call("GET", "/v1/datasets", listed(DatasetEntry), Credential.NONE, query=query)


def event(
    config: str,
    event_id: int,
    repo: str | None,
    tables: Sequence[str] | None,
    revision: str | None,
    file_format: str,
) -> Call[EventData]:
    wanted = {"repo": repo, "tables": ",".join(tables or ()), "revision": revision}
    query = {name: text for name, text in wanted.items() if text} | {"format": file_format}
    where = f"/v1/datasets/{segment(config)}/events/{event_id}"
    return Call("GET", where, _event, Credential.NONE, query=query, headers={"Accept": "*/*"})


def _event(answer: Answer) -> EventData:
    return EventData(content(answer), answer.media_type)
