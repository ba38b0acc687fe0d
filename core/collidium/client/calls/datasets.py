"""Calls about datasets, their events, and models on the hub."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from collidium.client.calls.call import Call, Credential, endpoint, not_none, segment
from collidium.client.responses import Response, content, listed, single
from collidium.records import DatasetEntry, HubModel, Page, RepoCard

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class EventData:
    """An event in the format in which it was sent."""

    content: bytes = field(repr=False)
    media_type: str

    def tables(self) -> dict[str, pa.Table]:
        """Decode the tables of the event.

        Returns
        -------
        dict of str to pyarrow.Table
            By name, one row per hit, cell, particle, track or jet. The schema metadata names the dataset.

        Raises
        ------
        ValueError
            If the event was sent in another format than Arrow.
        """
        from collidium.event_display import tables  # needs pyarrow, which other calls do not

        return tables.read(self.content)


class DatasetCalls:
    """Calls about datasets, their events, and models on the hub."""

    @endpoint
    def datasets(
        self, *, repo: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[DatasetEntry]]:
        """List the configs of public datasets, the latest first.

        Parameters
        ----------
        repo : str, optional
            Only configs of this dataset repository.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of DatasetEntry
            With a ``warning`` if the hub is unavailable and the list is an old one.

        Raises
        ------
        NotFound
            If there is no such repository.
        Unavailable, UpstreamError
            If the hub does not respond.
        """
        query = not_none(repo=repo, limit=limit, cursor=cursor)
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
        """Return one event of a dataset, without its truth if a task is scored on it.

        Parameters
        ----------
        config : str
        event_id : int
        repo : str, optional
            Required if several datasets have that config.
        tables : sequence of str, optional
            Names of tables; all by default.
        revision : str, optional
            Branch, tag or commit of the dataset; ``main`` by default.
        file_format : {"arrow", "phoenix"}

        Returns
        -------
        EventData
            Its ``tables()`` decodes Arrow.

        Raises
        ------
        NotFound
            If there is no such dataset or event.
        InvalidInput
            If there is no such table.
        Conflict
            If several datasets have the config.
        Unavailable, UpstreamError
            If the hub does not send the event.
        """
        wanted = not_none(repo=repo, tables=",".join(tables or ()) or None, revision=revision)
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
        """List the models on the hub that carry the platform's tag, the latest first.

        Parameters
        ----------
        search : str
            Part of their name.
        tag : str
            Only models with this tag.
        task : str
            Only models for this benchmark task.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of HubModel
            May be shorter than ``limit`` and still have a next page.

        Raises
        ------
        TooManyRequests
            If the hub is searched too often from this address.
        Unavailable, UpstreamError
            If the hub does not respond.
        """
        wanted = not_none(search=search or None, tag=tag or None, task=task or None)
        query = wanted | not_none(limit=limit, cursor=cursor)
        return Call("GET", "/v1/models", listed(HubModel), Credential.NONE, query=query)

    @endpoint
    def card(self, kind: Literal["datasets", "models"], repo: str) -> Call[RepoCard]:
        """Return the card and the files of a public repository on the hub that carries the platform's tag.

        Parameters
        ----------
        kind : {"datasets", "models"}
        repo : str
            ``namespace/name``.

        Returns
        -------
        RepoCard

        Raises
        ------
        NotFound
            If there is no such repository.
        Unavailable, UpstreamError
            If the hub does not respond.
        """
        namespace, _, name = repo.partition("/")
        path = f"/v1/cards/{kind}/{segment(namespace)}/{segment(name)}"
        return Call("GET", path, single(RepoCard), Credential.NONE)


def _event(response: Response) -> EventData:
    return EventData(content(response), response.media_type)
