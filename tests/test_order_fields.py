"""A field of an order is wherever an order is given, kept, run and shown.

What a new field still lacks is named by the test that fails; values are tested with the orders themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx
import pytest

from collidium.cli.requests import print_request
from collidium.cli.simulate import simulate as simulate_command
from collidium.contracts import pipeline
from collidium.order import ORDER_FIELDS, Order
from collidium.records import SimulationRequest
from collidium.testing.server import ServerProcess
from collidium_runners import command as runner_command
from collidium_tui.screens.requests import detail

ORDERED = set(Order.__struct_fields__)
#: What the price does not depend on.
FREE = {"seed"}


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([option.name for option in simulate_command.params], id="command"),
        pytest.param(SimulationRequest.__struct_fields__, id="record"),
        pytest.param(runner_command.PLACEHOLDERS, id="command-of-a-runner"),
        pytest.param(pipeline.PLACEHOLDERS, id="command-of-a-stage"),
    ],
)
def test_a_field_of_an_order_is_taken_and_kept(names: Iterable[str | None]) -> None:
    assert ORDERED - set(names) == set()


def test_a_field_of_an_order_is_shown_by_command_and_console(capsys: pytest.CaptureFixture[str]) -> None:
    ordered: dict[str, Any] = {
        field.name: f"some-{field.name}" if field.type is str else 700 + number
        for number, field in enumerate(ORDER_FIELDS)
    }
    request = SimulationRequest(
        request_id="0c62a9ba44bd4ff18f0f73a8de5c3c2d",
        hub_username="ada",
        state="queued",
        created_at=datetime(2026, 1, 31, tzinfo=UTC),
        credits_charged=Decimal(1),
        credits_refunded=Decimal(0),
        estimated_node_hours=Decimal(1),
        node_hours=Decimal(1),
        **ordered,
    )
    print_request(request)
    for shown in (capsys.readouterr().out, detail.order(request)):
        assert {name for name, value in ordered.items() if str(value) not in shown} == set()


def test_a_field_of_an_order_is_in_the_api_and_on_the_pages(tmp_path: Path) -> None:
    with ServerProcess(tmp_path) as server, httpx.Client(base_url=server.base_url) as visitor:
        document = visitor.get("/openapi.json").json()
        page = visitor.get("/simulate").text
    body = document["components"]["schemas"]["ChannelBody"]["properties"]
    price = [query["name"] for query in document["paths"]["/v1/estimate"]["get"]["parameters"]]
    assert ORDERED - set(body) == set()
    assert ORDERED - FREE - set(price) == set()
    assert ORDERED - set(re.findall(r'<(?:input|select)[^>]* name="(\w+)"', page)) == set()
