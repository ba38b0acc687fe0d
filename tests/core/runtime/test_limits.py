"""What is counted of callers, and for whom."""

from __future__ import annotations

import pytest

from collidium.runtime.limits import ADDRESSES, TokenBuckets, network_of


def test_buckets_of_many_addresses_are_bounded() -> None:
    buckets = TokenBuckets(2, 60, ADDRESSES, lambda: 1000.0)
    for number in range(ADDRESSES + 5):
        buckets.take(str(number))
    assert len(buckets._full_at) == ADDRESSES


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("unknown", "unknown"),
        ("", ""),
        ("x" * 1000, "x" * 64),
    ],
)
def test_network_of_an_address(address: str, network: str) -> None:
    assert network_of(address) == network
