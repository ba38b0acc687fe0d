"""Decoding of JSON to records, from servers of other versions and other services."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, TypeVar

import pytest

from collidium.client.responses import Response, single
from collidium.errors import UpstreamError
from collidium.records import Account, AuditEntry, Webhook

Record = TypeVar("Record")

ACCOUNT: dict[str, Any] = {
    "hub_username": "alice",
    "credits": 60.125,
    "banned": False,
    "created_at": "2026-01-02T03:04:05Z",
    "last_seen_at": None,
}


def decode(kind: type[Record], value: object, **raw: str) -> Record:
    """The record that is read from ``value``; what is ``raw`` stands in the JSON as it is."""
    text = json.dumps(value)
    for name, written in raw.items():
        text = text.replace(json.dumps({name: ACCOUNT[name]})[1:-1], f'"{name}": {written}')
    headers = {"content-type": "application/json"}
    return single(kind)(Response("http://127.0.0.1:8000", 200, headers, text.encode()))


def test_an_account_with_decimal_credits_and_aware_times() -> None:
    account = decode(Account, ACCOUNT)
    assert account == Account("alice", Decimal("60.125"), False, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


def test_fields_of_a_newer_server_are_ignored() -> None:
    assert decode(Account, ACCOUNT | {"shoe_size": 43}).hub_username == "alice"


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"hub_username": "null"}, r"Expected `str`, got `null` - at `\$.hub_username`"),
        ({"hub_username": "7"}, r"Expected `str`, got `int` - at `\$.hub_username`"),
        ({"credits": '"NaN"'}, "`credits` is a number beyond all bounds"),
        ({"credits": '"many"'}, r"Invalid decimal string - at `\$.credits`"),
        ({"credits": "true"}, r"Expected `decimal`, got `bool` - at `\$.credits`"),
        ({"credits": "1e999999999"}, "`credits` is a number beyond all bounds"),
        ({"credits": "1" * 401}, "`credits` is a number beyond all bounds"),
        ({"banned": "1"}, r"Expected `bool`, got `int` - at `\$.banned`"),
        ({"created_at": '"yesterday"'}, r"Invalid RFC3339 encoded datetime - at `\$.created_at`"),
        ({"created_at": '"2026-01-02T03:04:05"'}, r"with a timezone component - at `\$.created_at`"),
    ],
)
def test_invalid_fields_are_named(raw: dict[str, str], message: str) -> None:
    with pytest.raises(UpstreamError, match=message):
        decode(Account, ACCOUNT, **raw)


def test_integers_beyond_all_bounds_are_named() -> None:
    entry = {"at": ACCOUNT["created_at"], "actor": "", "action": "", "target": ""}
    for digits in (400, 4000):
        with pytest.raises(UpstreamError, match=r"`id` is a number beyond|out of range - at `\$.id`"):
            decode(AuditEntry, entry | {"id": int("1" * digits)})


def test_whole_credits_print_without_zeros() -> None:
    printed = {"18.000": "18", "0.1250": "0.125", "100": "100", "1e2": "100", "0.0": "0"}
    assert {text: str(decode(Account, ACCOUNT, credits=text).credits) for text in printed} == printed


def test_a_secret_is_not_in_what_is_logged_of_a_webhook() -> None:
    webhook = Webhook("https://a.example", datetime(2026, 1, 2, tzinfo=UTC), "whsec_hidden")
    assert "hidden" not in repr(webhook)
