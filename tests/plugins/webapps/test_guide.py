"""The guide at ``/guide``, if its package is installed."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from collidium.testing.server import ServerProcess

PAGE = "<title>Guide</title><script src='_static/theme.js'></script>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server where the site is installed."""
    directory = tmp_path_factory.mktemp("guide")
    html = directory / "collidium_docs/html"
    html.mkdir(parents=True)
    (html / "index.html").write_text(PAGE)
    (html.parent / "__init__.py").write_text("secret = 1\n")
    with ServerProcess(directory / "server", env={"PYTHONPATH": str(directory)}) as running:
        yield running


def fetched(server: ServerProcess, path: str) -> tuple[int, str, str]:
    """Status, body and policy, of a path that no client has made shorter."""
    connection = http.client.HTTPConnection(urlsplit(server.base_url).netloc, timeout=30)
    connection.request("GET", path)
    response = connection.getresponse()
    found = response.status, response.read().decode(), response.headers["Content-Security-Policy"]
    connection.close()
    return found


def test_the_guide_is_shown_under_the_policy_of_pages(server: ServerProcess) -> None:
    status, body, policy = fetched(server, "/guide/")
    assert (status, body) == (200, PAGE)
    assert "script-src 'self';" in policy
    assert '<a href="/guide/">Documentation</a>' in fetched(server, "/")[1]


@pytest.mark.parametrize("path", ["/guide/none.html", "/guide/../__init__.py", "/guide/%2e%2e/__init__.py"])
def test_only_pages_of_the_guide_are_shown(path: str, server: ServerProcess) -> None:
    status, body, _ = fetched(server, path)
    assert status == 404
    assert "secret" not in body


def test_without_the_package_its_name_is_given(web: ServerProcess) -> None:
    status, body, _ = fetched(web, "/guide/")
    assert status == 404
    assert "pip install collidium-docs" in body
