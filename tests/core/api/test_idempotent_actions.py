"""Operator actions with an Idempotency-Key: done once, however often and however many at once ask."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

import httpx

from .conftest import name_of

_serial = count()


def new_key() -> dict[str, str]:
    return {"Idempotency-Key": f"key-{next(_serial)}"}


def grant(client: httpx.Client, name: str, headers: dict[str, str], delta: float = 1) -> httpx.Response:
    body = {"hub_username": name, "delta": delta, "reason": "a talk"}
    return client.post("/admin/grant", json=body, headers=headers)


def test_ten_grants_in_turn_with_one_key_are_one(alice: httpx.Client, operator: httpx.Client) -> None:
    name, key = name_of(alice), new_key()
    answers = [grant(operator, name, key) for _ in range(10)]
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.text for answer in answers} == {answers[0].text}
    assert alice.get("/v1/me").json()["credits"] == 11
    actions = [line for line in operator.get("/admin/audit").json() if line["target"] == name]
    assert [line["action"] for line in actions] == ["grant"]


def test_ten_grants_at_once_with_one_key_are_one(alice: httpx.Client, operator: httpx.Client) -> None:
    name, key = name_of(alice), new_key()
    with ThreadPoolExecutor(10) as threads:
        answers = list(threads.map(lambda _: grant(operator, name, key), range(10)))
    assert [answer.status_code for answer in answers] == [200] * 10
    assert {answer.text for answer in answers} == {answers[0].text}
    assert alice.get("/v1/me").json()["credits"] == 11
