"""Audit: who did what, when."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from collidium_tui.screen import ConsoleScreen
from collidium_tui.widgets.table import PAGE, Column, Table

if TYPE_CHECKING:
    from collidium.client import AsyncClient, AuditEntry, Page


class AuditScreen(ConsoleScreen["Page[AuditEntry]"]):
    """What operators did, newest first."""

    label = "Audit"
    about = "What operators did, newest first."

    def content(self) -> ComposeResult:
        columns: list[Column[AuditEntry]] = [
            Column("when", lambda entry: entry.at),
            Column("who", lambda entry: entry.actor),
            Column("what", lambda entry: entry.action),
            Column("to", lambda entry: entry.target),
            Column("details", lambda entry: json.dumps(dict(entry.details), default=str)),
        ]
        yield Table(columns, lambda entry: str(entry.id), of="audit entries")

    async def fetch(self, client: AsyncClient) -> Page[AuditEntry]:
        return await client.admin_audit(limit=PAGE, cursor=self.query_one(Table).cursor)

    def show(self, data: Page[AuditEntry]) -> None:
        self.query_one(Table).show_page(data)
