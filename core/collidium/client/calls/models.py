"""Calls about models on the hub."""

from __future__ import annotations

from collidium.client.answers import listed
from collidium.client.calls.call import Call, Credential, paging
from collidium.records import HubModel, Page


def models(
    *, search: str = "", tag: str = "", task: str = "", limit: int | None = None, cursor: str | None = None
) -> Call[Page[HubModel]]:
    """A page of the models on the hub that carry the platform's tag, the latest first.

    ``search`` is part of their name, ``tag`` a tag that they have, ``task`` one that they say they are
    for. A page may be shorter than ``limit`` and still have a next one.
    """
    wanted = {"search": search, "tag": tag, "task": task}
    query = {name: text for name, text in wanted.items() if text} | paging(limit, cursor)
    return Call("GET", "/v1/models", listed(HubModel), Credential.NONE, query=query)
