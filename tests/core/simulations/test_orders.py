"""What an order costs, and what is refused."""

from __future__ import annotations

from dataclasses import fields
from decimal import Decimal
from pathlib import Path
from typing import get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from collidium import settings
from collidium.contracts.pipeline import Pipeline
from collidium.errors import InvalidInput
from collidium.order import LARGEST_SEED, ORDER_FIELDS, VARIATIONS, OrderOptions, Variation
from collidium.simulations import PRESETS, Order, estimate, limits
from collidium.simulations.orders import check

SETTINGS = settings.load(data_dir=Path("/nonexistent"))
#: A pipeline with limits of its own.
VARIES = Pipeline(
    name="small",
    title="",
    version="small-1",
    stages=(),
    channels={"ttbar": "", "unpriced": ""},
    refused={"dihiggs": "no such process"},
    max_pileup=100,
    variations=("field",),
)


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


def test_variations_are_read_and_written_as_one_text() -> None:
    order = Order("ttbar", 1, 0, vary=" smear=1.20, field=.99,misalign=10um,noise=1e-6,material=1 ")
    assert order.vary == "field=0.99,noise=1e-06,misalign=10um,smear=1.2"
    assert Order("ttbar", 1, 0, vary=order.vary) == order
    assert Variation.parse(order.vary) == Variation(field=0.99, noise=1e-6, misalign=10, smear=1.2)
    assert Order("ttbar", 1, 0, vary="field=1,smear=1.0").vary == ""
    assert {field.name for field in fields(Variation)} == set(VARIATIONS)
    assert all(limits.nominal == getattr(Variation(), name) for name, limits in VARIATIONS.items())


@pytest.mark.parametrize(
    "text",
    [
        *("field", "field=", "field=x", "field=nan", "field=inf", "field=-1", "field=0.4", "field=1_0"),
        *("field=1um", "fields=1", "=1", ",", "field=1,field=1", "misalign=10mm", "\0", "x" * 300),
    ],
)
def test_variations_that_make_no_sense_are_rejected(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        check(Order("ttbar", 1, 0, vary=text), SETTINGS, VARIES)
    assert {error["field"] for error in caught.value.errors} == {"vary"}


@given(st.text(max_size=300))
def test_no_text_of_a_variation_crashes(text: str) -> None:
    order = Order("ttbar", 1, 0, vary=text)
    try:
        Variation.parse(text)
    except InvalidInput:
        assert order.vary == text
    else:
        assert len(order.vary) <= 200


def test_orders_keep_the_limits_of_their_pipeline() -> None:
    check(Order("ttbar", 1, 100, vary="field=0.9"), SETTINGS, VARIES)
    with pytest.raises(InvalidInput) as caught:
        check(Order("dihiggs", 0, 101, vary="smear=2"), SETTINGS, VARIES)
    assert [error["field"] for error in caught.value.errors] == ["channel", "events", "pileup", "vary"]
    assert "pipeline small cannot simulate dihiggs: no such process" in caught.value.detail
    assert "does not vary smear; it varies field" in caught.value.detail
    with pytest.raises(InvalidInput, match="there is no channel 'zee'"):
        check(Order("zee", 1, 0), SETTINGS, VARIES)
    with pytest.raises(InvalidInput, match="does not vary field"):
        check(Order("ttbar", 1, 0, vary="field=0.9"), SETTINGS)
    allowed = limits(SETTINGS, VARIES)
    assert (allowed.channels, allowed.pileup.maximum) == (("ttbar",), 100)
    assert [one.name for one in allowed.variations] == ["field"]


def test_orders_of_other_events_have_other_hashes() -> None:
    order = Order("ttbar", 10, 0, 42)
    others = [
        replace(order, **{name: value})
        for name, value in {
            "channel": "jets",
            "events": 11,
            "pileup": 1,
            "seed": 43,
            "vary": "field=0.9",
        }.items()
    ]
    hashes = {one.config_hash("v1") for one in (order, *others)} | {order.config_hash("v2")}
    assert len(hashes) == 7
    assert order.config_hash("v1") == Order("ttbar", 10, 0).config_hash("v1")


#: Orders with their hashes by 0.4.0, for a pipeline of version acts-4.
HASHED_BY_0_4_0 = [
    (Order("ttbar", 10, 0), "b91882f7a0f151db298ddc012c7e62551007c5b0f5c1f8c5119386d991441154"),
    (Order("ttbar", 10, 0, 7), "223488205288b74cd012f2c303942e3193026ad3ab195bd85127ca4cec13d1de"),
    (Order("zmumu", 1000, 40, 2**31 - 1), "d38b7b32a8efb551ba7732e640d0fec8d09dbd568935ebf99c55d6bd25413f02"),
    (Order("jets", 1, 200, 0), "626b574e03cada47b51ea1d6306539bc6e8cab0206088350afeb6b88e65dc62d"),
    (
        Order("higgs_portal", 100_000, 10, LARGEST_SEED),
        "295ce75c2f5bc7535965d0641acb9b1f32a815c1aea03cce84e732157d228d30",
    ),
    (
        Order("single_muon", 100, 0, 42, "field=0.99"),
        "c83954212e0c895c5d0e22f15b85a8b8a5a2b5eeb957bc184e5583f0033fefc4",
    ),
    (
        Order("ttbar", 10, 40, 1, "misalign=10um, smear=1.20"),
        "2facd98d24b309d26495b541d22ebb199b9f5598d0905f1dc43467b68fa478f2",
    ),
    (
        Order("ttbar", 10, 40, 1, "field=1"),
        "1351dda3db0f84a71aa9567b821b3a2432946de358129a999f7c81b0f687fff6",
    ),
    (
        Order("dihiggs", 5, 3, 3, "nonsense"),
        "39aedb7dedc9a6c7dbdf5b6f61089f99849ff34e862bf341b42a9acd52220794",
    ),
    (
        Order('é"\\channel', 2, 1, 9, "gsf=6,merge=1"),
        "08ecbfcb5f9f9fac19ad20940a603a2a340f9bdb77c2680a878e582b396b9b71",
    ),
]


@pytest.mark.parametrize(("order", "hashed"), HASHED_BY_0_4_0)
def test_orders_have_the_hashes_of_earlier_releases(order: Order, hashed: str) -> None:
    assert order.config_hash("acts-4") == hashed
    assert order.identity.keys() == {"channel", "events", "pileup", "seed", "vary"}


def test_later_fields_have_defaults_that_are_not_hashed() -> None:
    hashed = {field.name for field in ORDER_FIELDS if field.is_always_hashed}
    assert hashed == {"channel", "events", "pileup", "seed", "vary"}
    optional = {field.name: field.type for field in ORDER_FIELDS if not field.is_required}
    assert get_type_hints(OrderOptions) == optional


def test_every_preset_can_be_ordered() -> None:
    assert PRESETS["ttbar-quick"] == Order("ttbar", 10, 0)
    for order in PRESETS.values():
        check(order, SETTINGS)
