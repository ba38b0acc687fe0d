"""The API reference: every operation with its fields, by audience."""

from __future__ import annotations

import re

import httpx
from playwright.sync_api import Page, expect

from collidium.testing.server import ServerProcess


def test_every_operation_is_listed_with_its_fields(web: ServerProcess) -> None:
    answer = httpx.get(f"{web.base_url}/docs", trust_env=False)
    document = httpx.get(f"{web.base_url}/openapi.json", trust_env=False).json()
    listed = set(re.findall(r"<summary><strong>(\w+)</strong> <code>([^<]+)</code>", answer.text))
    operations = {(method.upper(), path) for path, found in document["paths"].items() for method in found}
    assert listed == operations
    for field in ("hub_username", "delta", "reason", "banned", "Idempotency-Key", "preset", "model_claim"):
        assert f"<code>{field}</code>" in answer.text
    assert "<code>node_seconds</code> are those of one node" in answer.text  # as Markdown, not as text
    assert "`" not in answer.text
    assert "Scope: <code>accounts</code>" in answer.text
    for limit in ("1 to 1000", "at most 200 characters", "<code>open</code>, <code>members</code>"):
        assert f": {limit}" in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_operations_are_grouped_by_who_may_call_them(page: Page) -> None:
    page.goto("/docs")
    for title, operation in (("Public", "leaderboard"), ("Account", "submit"), ("Operator", "admin_grant")):
        section = page.get_by_role("region", name=title, exact=True)
        expect(section.locator(f"details#{operation}")).to_have_count(1)
    page.locator("details#submit summary").click()
    expect(page.locator("details#submit").get_by_text("application/octet-stream")).to_be_visible()
