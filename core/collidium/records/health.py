"""Whether the server runs, and whether it can do its work."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from collidium.records.base import Record


class Health(Record, frozen=True):
    """The process runs."""

    status: Annotated[str, Meta(extra_json_schema={"enum": ["ok"]})]
    version: str


class Readiness(Record, frozen=True):
    """Whether the process can do its work, and what an operator should know."""

    status: Annotated[str, Meta(extra_json_schema={"enum": ["ready", "not ready"]})]
    database: Annotated[str, Meta(extra_json_schema={"enum": ["ok", "away"]})]
    submissions_frozen: bool | None = None
    plugins_failed: tuple[str, ...] = ()
