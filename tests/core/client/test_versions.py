"""A server of another release is reported as such."""

from __future__ import annotations

import json

import pytest
from tests.core.client.servers import answering, response, serving

from collidium import __version__
from collidium.client import Client, version_mismatch
from collidium.errors import NotFound, UpstreamError

SERIES = ".".join(__version__.split(".")[:2])


def test_releases_of_one_series_understand_each_other() -> None:
    for version in (__version__, f"{SERIES}.99", f"{SERIES}.0rc1", SERIES):
        assert version_mismatch(version) is None
    for version in ("0.0.1", "99.0", f"{SERIES}1.0", "", "weird"):
        assert __version__ in (version_mismatch(version) or "")


@pytest.mark.parametrize(
    ("media_type", "error", "message"),
    [
        ("application/problem+json", UpstreamError, "older than this program"),
        ("text/html", NotFound, "not an answer of a Collidium server"),
    ],
)
def test_a_server_without_an_overview_is_older(media_type: str, error: type[Exception], message: str) -> None:
    body = json.dumps({"title": "Not found", "detail": "there is nothing here", "status": 404}).encode()
    answer = response("404 Not Found", body, media_type)
    with (
        serving(answering(answer)) as url,
        Client(url, admin_token="t") as client,
        pytest.raises(error, match=message),
    ):
        client.admin_overview()
