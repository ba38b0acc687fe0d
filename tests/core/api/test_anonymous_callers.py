"""Limits on what anonymous callers can cause, and on the size of responses."""

from __future__ import annotations

import json

import httpx
import pytest

from .conftest import ok

PROBLEMS = 20
METHODS = {"get", "put", "post", "delete"}


def test_callers_without_a_token_are_rejected_first(anonymous: httpx.Client) -> None:
    document = ok(anonymous.get("/openapi.json"))
    operations = [
        (method, path)
        for path, item in document["paths"].items()
        for method, operation in item.items()
        if method in METHODS and operation.get("security")
    ]
    assert len(operations) >= 20
    answers = {
        (method, path): anonymous.request(
            method, path.format_map(Plain()), params={"limit": "x", "wrong": "1"}, json={"wrong": 1}
        )
        for method, path in operations
    }
    answers["get", "compat"] = anonymous.get("/compat/colliderml/v1/requests?limit=x")
    assert {call: answer.status_code for call, answer in answers.items()} == dict.fromkeys(answers, 401)


class Plain(dict[str, str]):
    """Something for every variable of a path."""

    def __missing__(self, name: str) -> str:
        return "tracking"


@pytest.mark.parametrize(("method", "path"), [("PUT", "/v1/me/webhook"), ("POST", "/v1/simulate")])
def test_of_many_problems_a_few_are_reported(alice: httpx.Client, method: str, path: str) -> None:
    wrong = {f"{number}{'x' * 200}": 0 for number in range(PROBLEMS + 5)}
    answer = alice.request(method, path, json=wrong)
    assert answer.status_code == 422
    problem = answer.json()
    assert len(problem["errors"]) == PROBLEMS
    assert max(len(item["field"]) for item in problem["errors"]) == 100
    assert problem["detail"].split(" and ")[-1] in {"5 more", "8 more"}  # what is missing counts, too
    assert len(answer.content) < 10_000


@pytest.mark.parametrize(("method", "path"), [("PUT", "/v1/me/webhook"), ("POST", "/v1/simulate")])
def test_bodies_without_a_file_are_small(alice: httpx.Client, method: str, path: str) -> None:
    many = json.dumps({f"{number:x}": 0 for number in range(10_000)})
    assert len(many) > 65_536
    answer = alice.request(method, path, content=many, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert "65,536" in answer.json()["detail"]
