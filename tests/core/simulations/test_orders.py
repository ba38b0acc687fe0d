"""What an order costs, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collidium import settings
from collidium.errors import InvalidInput
from collidium.simulations import PRESETS, Order, estimate
from collidium.simulations.orders import check

SETTINGS = settings.load(data_dir=Path("/nonexistent"))


@pytest.mark.parametrize(
    ("order", "node_hours"),
    [
        (Order("ttbar", 10, 0), "0.333"),  # (300 + 90 * 10) / 3600
        (Order("ttbar", 100, 200), "12.583"),  # (300 + 90 * 100 * 5) / 3600
        (Order("zmumu", 120, 50), "2.000"),  # 30 * 120 * 2 / 3600
        (Order("higgs_portal", 60, 0), "1.000"),
        (Order("single_muon", 1, 0), "0.001"),
    ],
)
def test_a_credit_is_a_node_hour(order: Order, node_hours: str) -> None:
    assert estimate(order, SETTINGS).node_hours == Decimal(node_hours)


orders = st.builds(
    Order,
    st.sampled_from(sorted(SETTINGS.channels)),
    st.integers(1, SETTINGS.max_events),
    st.integers(0, SETTINGS.max_pileup),
    st.integers(0, 2**31 - 1),
)


@given(orders)
def test_nothing_is_free_and_more_never_costs_less(order: Order) -> None:
    price = estimate(order, SETTINGS).node_hours
    assert price >= Decimal("0.001")
    assert price == price.quantize(Decimal("0.001"))
    if order.events < SETTINGS.max_events:
        assert estimate(replace(order, events=order.events + 1), SETTINGS).node_hours >= price
    if order.pileup < SETTINGS.max_pileup:
        assert estimate(replace(order, pileup=order.pileup + 1), SETTINGS).node_hours >= price


def test_all_problems_of_an_order_are_reported_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        check(Order("tbar", 0, 201, -1), SETTINGS)
    assert [error["field"] for error in caught.value.errors] == ["channel", "events", "pileup", "seed"]
    assert "single_muon" in caught.value.detail


def test_orders_of_other_events_have_other_hashes() -> None:
    order = Order("ttbar", 10, 0, 42)
    others = [
        replace(order, **{name: value})
        for name, value in {"channel": "jets", "events": 11, "pileup": 1, "seed": 43}.items()
    ]
    hashes = {one.config_hash("v1") for one in (order, *others)} | {order.config_hash("v2")}
    assert len(hashes) == 6
    assert order.config_hash("v1") == Order("ttbar", 10, 0).config_hash("v1")


def test_every_preset_can_be_ordered() -> None:
    assert PRESETS["ttbar-quick"] == Order("ttbar", 10, 0)
    for order in PRESETS.values():
        check(order, SETTINGS)
