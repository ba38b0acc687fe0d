"""Limits on the size of requests and of the problems in responses."""

from __future__ import annotations

import json

import httpx
import pytest

PROBLEMS = 20


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
