"""A server of another release is named as such."""

from __future__ import annotations

import json

import pytest
from tests.core.client.servers import answering, response, serving

from collidium import __version__
from collidium.client import Client, version_mismatch
from collidium.errors import NotFound, UpstreamError

SERIES = ".".join(__version__.split(".")[:2])


@pytest.mark.parametrize("version", [__version__, f"{SERIES}.99", f"{SERIES}.0rc1", SERIES])
def test_releases_of_one_series_understand_each_other(version: str) -> None:
    assert version_mismatch(version) is None


@pytest.mark.parametrize("version", ["0.0.1", "99.0", f"{SERIES}1.0", "", "weird"])
def test_others_are_named(version: str) -> None:
    warning = version_mismatch(version)
    assert warning is not None
    assert __version__ in warning


def test_a_server_without_an_overview_is_older() -> None:
    problem = json.dumps({"title": "Not found", "detail": "there is nothing here", "status": 404}).encode()
    answer = response("404 Not Found", problem, "application/problem+json")
    with (
        serving(answering(answer)) as url,
        Client(url, admin_token="t") as client,
        pytest.raises(UpstreamError, match="older than this program"),
    ):
        client.admin_overview()


def test_a_page_that_is_not_there_is_no_older_server() -> None:
    answer = response("404 Not Found", b"nothing here", "text/html")
    with (
        serving(answering(answer)) as url,
        Client(url, admin_token="t") as client,
        pytest.raises(NotFound, match="not an answer of a Collidium server"),
    ):
        client.admin_overview()
