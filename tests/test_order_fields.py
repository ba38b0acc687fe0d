"""A field of an order, declared once, is wherever an order is given, kept, run and shown."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from collidium.cli.printing import print_request
from collidium.order import ORDER_FIELDS, Order, order_facts
from collidium.records import SimulationRequest
from collidium.testing.server import ServerProcess

#: A value of each field that no other text has.
VALUES: dict[str, Any] = {
    field.name: 700 + number if field.is_number else f"some-{field.name}"
    for number, field in enumerate(ORDER_FIELDS)
}


def test_every_field_of_an_order_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    """A field without a phrase would be missing wherever an order is shown."""
    request = SimulationRequest(
        request_id="0c62a9ba44bd4ff18f0f73a8de5c3c2d",
        hub_username="ada",
        state="queued",
        created_at=datetime(2026, 1, 31, tzinfo=UTC),
        credits_charged=Decimal(1),
        credits_refunded=Decimal(0),
        estimated_node_hours=Decimal(1),
        node_hours=Decimal(1),
        **VALUES,
    )
    print_request(request)
    shown = capsys.readouterr().out
    assert [name for name, value in VALUES.items() if str(value) not in shown] == []
    assert [*order_facts(request).values()] == [*VALUES.values()]
    assert request.parameters == Order(**VALUES).parameters == VALUES


def test_every_field_of_an_order_is_taken_by_api_and_page(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server, httpx.Client(base_url=server.base_url) as visitor:
        document = visitor.get("/openapi.json").json()
        page = visitor.get("/simulate").text
    schemas = document["components"]["schemas"]
    asked = {query["name"] for query in document["paths"]["/v1/estimate"]["get"]["parameters"]}
    assert VALUES.keys() <= schemas["ChannelBody"]["properties"].keys()
    assert VALUES.keys() <= schemas["SimulationRequest"]["properties"].keys()
    assert {field.name for field in ORDER_FIELDS if field.is_priced} == asked
    assert VALUES.keys() <= set(re.findall(r'<(?:input|select)[^>]* name="(\w+)"', page))
