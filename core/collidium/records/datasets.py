"""Datasets that may be looked at."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from collidium.records.base import Record, Time


class DatasetEntry(Record, frozen=True):
    """A config of a dataset; null: unknown from its files."""

    repo: Annotated[
        str, Meta(description="`namespace/name` on the hub; `sample`: it comes with the platform.")
    ]
    config: str
    revision: Annotated[str, Meta(description="Commit of the repository; `local` for the sample.")]
    tables: tuple[str, ...]
    bytes: int
    events: int | None = None
    first_event: int | None = None
    last_event: int | None = None
    updated_at: Time | None = None
    sample: bool = False
    license: str | None = None
    source: str | None = None


class RepoCard(Record, frozen=True):
    """The card and the files of a public repository on the hub, as its owners wrote them."""

    repo: str
    revision: Annotated[str, Meta(description="Commit of the repository.")]
    url: Annotated[str, Meta(description="Its page on the hub.")]
    text: Annotated[str, Meta(description="Its card in Markdown, with the front matter.")] = ""
    license: str | None = None
    files: Annotated[tuple[str, ...], Meta(description="The first of its files.")] = ()
    more_files: int = 0


class HubModel(Record, frozen=True):
    """A model on the hub, as its owners describe it; null: not given."""

    model_repo: Annotated[str, Meta(description="`namespace/name` on the hub.")]
    author: str
    url: Annotated[str, Meta(description="Its page on the hub.")]
    tags: Annotated[
        tuple[str, ...], Meta(description="Its tags on the hub, without those of the platform.")
    ] = ()
    tasks: Annotated[tuple[str, ...], Meta(description="Benchmark tasks that its owners name.")] = ()
    updated_at: Time | None = None
    description: str | None = None
    library: str | None = None
    likes: int | None = None
    downloads: int | None = None
