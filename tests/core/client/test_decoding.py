"""JSON to records."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from collidium.client.decoding import UnexpectedAnswer, decode
from collidium.client.records import Account, PredictionColumn, Receipt, TaskCard

ACCOUNT: dict[str, Any] = {
    "hub_username": "alice",
    "credits": Decimal("60.125"),
    "banned": False,
    "created_at": "2026-01-02T03:04:05Z",
    "last_seen_at": None,
}


def test_an_account_with_decimal_credits_and_aware_times() -> None:
    account = decode(Account, ACCOUNT)
    assert account == Account("alice", Decimal("60.125"), False, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


def test_whole_credits_are_decimals_too() -> None:
    assert isinstance(decode(Account, ACCOUNT | {"credits": 10}).credits, Decimal)


def test_fields_of_a_newer_server_are_ignored() -> None:
    assert decode(Account, ACCOUNT | {"shoe_size": 43}).hub_username == "alice"


def test_nested_records_and_lists() -> None:
    card = decode(
        TaskCard,
        {
            "name": "tracking",
            "title": "Tracking",
            "description": "",
            "dataset": "ttbar_pu0",
            "eval_events": {"start": 3, "stop": 5},
            "inputs": ["tracker_hits"],
            "columns": [{"name": "event_id", "kind": "integer", "description": ""}],
            "metrics": [
                {
                    "name": "m",
                    "higher_is_better": True,
                    "description": "",
                    "reward": 50,
                    "floor": Decimal("0.25"),
                }
            ],
            "primary_metric": "m",
            "scorer_version": "1",
            "accepts_submissions": True,
        },
    )
    assert (card.eval_events.start, card.eval_events.stop) == (3, 5)
    assert card.metrics[0].floor == 0.25
    assert isinstance(card.metrics[0].floor, float)
    assert card.inputs == ("tracker_hits",)


def test_pairs_have_two_items_of_which_either_may_be_null() -> None:
    column = {"name": "n_params", "kind": "integer", "description": "", "bounds": [1, None]}
    assert decode(PredictionColumn, column).bounds == (1.0, None)
    with pytest.raises(UnexpectedAnswer, match="bounds has 3 items, not 2"):
        decode(PredictionColumn, column | {"bounds": [1, 2, 3]})


def test_scores_are_floats() -> None:
    receipt = decode(
        Receipt,
        {
            "submission_id": "x",
            "scores": {"m": Decimal("0.5"), "n": 1},
            "credits_earned": 0,
            "deduplicated": False,
        },
    )
    assert receipt.scores == {"m": 0.5, "n": 1.0}
    assert all(isinstance(score, float) for score in receipt.scores.values())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hub_username": None}, "answer.hub_username is null, not str"),
        ({"hub_username": 7}, "answer.hub_username is int, not str"),
        ({"credits": "10"}, "answer.credits is str, not Decimal"),
        ({"credits": True}, "answer.credits is bool, not Decimal"),
        ({"credits": Decimal("1e999999999")}, "answer.credits is a number beyond all bounds"),
        ({"credits": 10**400}, "answer.credits is a number beyond all bounds"),
        ({"banned": 1}, "answer.banned is int, not bool"),
        ({"created_at": "yesterday"}, "answer.created_at is no RFC 3339 time: 'yesterday'"),
        ({"created_at": "2026-01-02T03:04:05"}, "answer.created_at is a time without a zone"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UnexpectedAnswer, match=message):
        decode(Account, ACCOUNT | change)


def test_a_missing_field_is_named() -> None:
    without = {name: value for name, value in ACCOUNT.items() if name != "credits"}
    with pytest.raises(UnexpectedAnswer, match="answer lacks 'credits'"):
        decode(Account, without)


@pytest.mark.parametrize("value", [None, [], "text", 3])
def test_something_that_is_no_record(value: object) -> None:
    with pytest.raises(UnexpectedAnswer, match="not dict"):
        decode(Account, value)


def test_whole_credits_print_without_zeros() -> None:
    assert [str(decode(Decimal, Decimal(text))) for text in ("18.000", "0.125", "100")] == [
        "18",
        "0.125",
        "100",
    ]
