"""Unexpected responses become errors that explain what happened."""

from __future__ import annotations

import json
from typing import Any

import pytest

from collidium import errors
from collidium.client.responses import Response, listed, readiness, single
from collidium.records import Account, Transaction

BACKEND = "http://127.0.0.1:8000"


def answer(status: int, body: bytes, content_type: str = "application/json", **headers: str) -> Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(BACKEND, status, {"content-type": content_type, **named}, body)


def problem(status: int, **fields: Any) -> Response:
    document = {"type": "about:blank", "title": "T", "status": status, "detail": "what happened", **fields}
    headers = {"retry_after": "7"} if status in (429, 503) else {}
    return answer(status, json.dumps(document).encode(), "application/problem+json; charset=utf-8", **headers)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, errors.BadRequest),
        (401, errors.Unauthenticated),
        (402, errors.PaymentRequired),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (405, errors.MethodNotAllowed),
        (409, errors.Conflict),
        (413, errors.TooLarge),
        (415, errors.UnsupportedMediaType),
        (422, errors.InvalidInput),
        (429, errors.TooManyRequests),
        (500, errors.CollidiumError),
        (502, errors.UpstreamError),
        (503, errors.Unavailable),
        (418, errors.RefusedError),
        (504, errors.UpstreamError),
    ],
)
def test_a_problem_becomes_the_error_of_its_status(status: int, kind: type[errors.CollidiumError]) -> None:
    with pytest.raises(errors.CollidiumError) as caught:
        single(Account)(problem(status, errors=[{"detail": "a"}], request_id="r1"))
    assert type(caught.value) is kind
    assert caught.value.detail == "what happened"
    assert caught.value.errors == [{"detail": "a"}]
    assert caught.value.request_id == "r1"
    assert caught.value.headers == ({"Retry-After": "7"} if status in (429, 503) else {})


@pytest.mark.parametrize("status", [200, 404, 502])
def test_a_page_of_a_proxy_is_named_as_such(status: int) -> None:
    with pytest.raises(
        errors.RefusedError, match=f"{BACKEND} answered {status} .*text/html.*PLATFORM_BACKEND"
    ):
        single(Account)(answer(status, b"<html>", "text/html"))


def test_a_redirect_asks_to_set_the_address() -> None:
    with pytest.raises(errors.UpstreamError, match="redirects elsewhere; set PLATFORM_BACKEND"):
        single(Account)(answer(308, b"", "text/html", location="https://elsewhere/"))


@pytest.mark.parametrize("body", [b"", b"{", b'{"credits": NaN}', b'{"a":' * 100_000, b"\xff"])
def test_a_body_that_is_no_json(body: bytes) -> None:
    with pytest.raises(errors.UpstreamError, match="not an answer of a Collidium server"):
        single(Account)(answer(200, body))


def test_json_of_another_shape_names_the_field() -> None:
    with pytest.raises(errors.UpstreamError, match=r"does not understand: .*required field `hub_username`"):
        single(Account)(answer(200, b"{}"))


def test_the_next_page_is_in_the_link() -> None:
    link = f"{BACKEND}/v1/me/transactions?limit=2&cursor=a%2Bb"
    page = listed(Transaction)(Response(BACKEND, 200, {"content-type": "application/json"}, b"[]", link))
    assert page.next_cursor == "a+b"
    assert listed(Transaction)(answer(200, b"[]")).next_cursor is None


def test_a_link_that_is_no_url_is_rejected() -> None:
    strange = Response(BACKEND, 200, {"content-type": "application/json"}, b"[]", "http://[::1")
    with pytest.raises(errors.UpstreamError, match="not an answer of a Collidium server"):
        listed(Transaction)(strange)


def test_not_ready_is_an_answer_not_an_error() -> None:
    body = {"status": "not ready", "database": "away", "submissions_frozen": None, "plugins_failed": ["x"]}
    ready = readiness(answer(503, json.dumps(body).encode()))
    assert ready.status == "not ready"
    assert ready.plugins_failed == ("x",)


def test_readiness_of_something_else_is_an_error() -> None:
    with pytest.raises(errors.Unavailable, match="text/html"):
        readiness(answer(503, b"<html>", "text/html"))
    with pytest.raises(errors.Unavailable, match="what happened"):
        readiness(problem(503))
