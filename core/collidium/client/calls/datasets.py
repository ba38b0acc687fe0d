"""Calls about datasets, single events of them, and models on the hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from collidium.client.answers import Answer, content, listed, single
from collidium.client.calls.call import Call, Credential, endpoint, given, segment
from collidium.records import DatasetEntry, HubModel, Page, RepoCard

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class EventData:
    """An event as it was sent."""

    content: bytes = field(repr=False)
    media_type: str

    def tables(self) -> dict[str, pa.Table]:
        """Decode its tables.

        Returns
        -------
        dict of str to pyarrow.Table
            By name, with a row for each hit, cell, particle, track or jet. The metadata of the schemas has
            the dataset.

        Raises
        ------
        ValueError
            If the event was sent in another format than Arrow.
        """
        # It needs pyarrow, which programs that pass the bytes on do not.
        from collidium.event_display import tables as stream

        return stream.read(self.content)


class DatasetCalls:
    """Calls about datasets, single events of them, and models on the hub."""

    @endpoint
    def datasets(
        self, *, repo: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[DatasetEntry]]:
        """A page of the public datasets that may be looked at, the latest first, by their configs."""
        query = given(repo=repo, limit=limit, cursor=cursor)
        return Call("GET", "/v1/datasets", listed(DatasetEntry), Credential.NONE, query=query)

    @endpoint
    def event(
        self,
        config: str,
        event_id: int,
        *,
        repo: str | None = None,
        tables: Sequence[str] | None = None,
        revision: str | None = None,
        file_format: Literal["arrow", "phoenix"] = "arrow",
    ) -> Call[EventData]:
        """One event of a dataset, without its truth if a task is scored on it.

        Parameters
        ----------
        config : str
        event_id : int
        repo : str, optional
            Needed where several datasets have that config.
        tables : sequence of str, optional
            Names of tables; all by default.
        revision : str, optional
            Branch, tag or commit of the dataset; ``main`` by default.
        file_format : {"arrow", "phoenix"}

        Returns
        -------
        EventData
            Whose ``tables()`` decodes Arrow.

        Raises
        ------
        NotFound
            If there is no such dataset, table or event.
        Conflict
            If several datasets have the config.
        Unavailable, UpstreamError
            If the hub does not send the event.
        """
        wanted = given(repo=repo, tables=",".join(tables or ()) or None, revision=revision)
        query = wanted | {"format": file_format}
        where = f"/v1/datasets/{segment(config)}/events/{event_id}"
        return Call("GET", where, _event, Credential.NONE, query=query, headers={"Accept": "*/*"})

    @endpoint
    def models(
        self,
        *,
        search: str = "",
        tag: str = "",
        task: str = "",
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Page[HubModel]]:
        """A page of the models on the hub that carry the platform's tag, the latest first.

        Parameters
        ----------
        search : str
            A part of their name.
        tag : str
            A tag that they have.
        task : str
            Their benchmark task.
        limit, cursor
            The page: its length, and ``next_cursor`` of the page before.

        Returns
        -------
        Page of HubModel
            Which may be shorter than ``limit`` and still have a next one.
        """
        wanted = given(search=search or None, tag=tag or None, task=task or None)
        query = wanted | given(limit=limit, cursor=cursor)
        return Call("GET", "/v1/models", listed(HubModel), Credential.NONE, query=query)

    @endpoint
    def card(self, kind: Literal["datasets", "models"], repo: str) -> Call[RepoCard]:
        """The card and the files of a public repository on the hub that carries the platform's tag.

        Parameters
        ----------
        kind : {"datasets", "models"}
        repo : str
            ``namespace/name``.

        Raises
        ------
        NotFound
            If there is no such repository.
        Unavailable, UpstreamError
            If the hub does not send it.
        """
        namespace, _, name = repo.partition("/")
        path = f"/v1/cards/{kind}/{segment(namespace)}/{segment(name)}"
        return Call("GET", path, single(RepoCard), Credential.NONE)


def _event(answer: Answer) -> EventData:
    return EventData(content(answer), answer.media_type)
