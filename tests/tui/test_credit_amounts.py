"""Credits as an operator types them."""

from __future__ import annotations

from decimal import Decimal

import pytest

from collidium.accounts import ledger
from collidium.errors import InvalidInput
from collidium_tui.screens.accounts import LARGEST, amount, problem_with


@pytest.mark.parametrize(
    ("typed", "expected"),
    [("25", "25"), ("0.5", "0.5"), ("+1", "1"), ("-10.125", "-10.125"), ("007", "7"), ("1000000000", "1e9")],
)
def test_what_is_an_amount(typed: str, expected: str) -> None:
    assert amount(typed) == Decimal(expected)
    ledger.check_amount(amount(typed))


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("", "a number like"),
        ("nan", "a number like"),
        ("Infinity", "a number like"),
        ("1e9", "a number like"),
        ("٣", "a number like"),
        ("1,5", "a number like"),
        (".5", "a number like"),
        ("[red]5", "a number like"),
        ("5" * 1000, "a number like"),
        ("0", "changes nothing"),
        ("-0.000", "changes nothing"),
        ("0.0001", "three decimal places"),
        ("1000000000.001", "at most"),
        ("-99999999999", "at most"),
    ],
)
def test_what_is_none(typed: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        amount(typed)


@pytest.mark.parametrize("typed", ["0", "0.0001", "1000000000.001", "-99999999999"])
def test_the_bounds_are_those_of_the_ledger(typed: str) -> None:
    with pytest.raises(InvalidInput):
        ledger.check_amount(Decimal(typed))


def test_a_balance_stays_within_its_bounds() -> None:
    assert problem_with("-10", Decimal(10)) is None
    assert problem_with("-10.001", Decimal(10)) == "exceeds the balance of 10"
    assert problem_with("1", LARGEST) == "would make a balance above 1,000,000,000 credits"
    assert problem_with("x", Decimal(10)) == "must be a number like 25, 0.5 or -10"
