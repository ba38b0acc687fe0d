"""Calls about models on the hub."""

from __future__ import annotations

from collidium.client.answers import listed
from collidium.client.calls.call import Call, Credential, paging
from collidium.records import HubModel, Page


def models(search: str, tag: str, task: str, limit: int | None, cursor: str | None) -> Call[Page[HubModel]]:
    wanted = {"search": search, "tag": tag, "task": task}
    query = {name: text for name, text in wanted.items() if text} | paging(limit, cursor)
    return Call("GET", "/v1/models", listed(HubModel), Credential.NONE, query=query)
