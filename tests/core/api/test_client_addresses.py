"""From where a request comes, behind proxies that write addresses in their own ways."""

from __future__ import annotations

import pytest
from quart import Quart

from collidium.api.context import caller_address


@pytest.mark.parametrize(
    ("passed", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:49152", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:49152", "2001:db8::1"),
        ("spoofed, 192.0.2.1:1", "192.0.2.1"),
        ("unknown", "198.51.100.1"),
        ("", "198.51.100.1"),
    ],
)
async def test_caller_address_of_a_proxy(passed: str, address: str) -> None:
    headers = {"Remote-Addr": "198.51.100.1", "X-Forwarded-For": passed}
    async with Quart("app").test_request_context("/", headers=headers):
        assert caller_address(1) == address
