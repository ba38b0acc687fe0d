"""Style sheets and scripts: immutable under versioned URLs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin

import httpx
import pytest

from collidium.testing.server import ServerProcess


@pytest.fixture(scope="module")
def visitor(web: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=web.base_url, trust_env=False) as client:
        yield client


@pytest.fixture(scope="module")
def script(visitor: httpx.Client) -> str:
    """The address of the event display's script, as its page has it."""
    found = re.search(r'src="(/web/static/[^"]+/js/display/main\.js)"', visitor.get("/events").text)
    assert found
    return found[1]


def test_versioned_scripts_and_their_imports_are_immutable(visitor: httpx.Client, script: str) -> None:
    main = visitor.get(script)
    imported = re.findall(r'from "(\.[^"]+)"', main.text)
    assert imported
    for address in [script, *(urljoin(script, path) for path in imported)]:
        answer = visitor.get(address)
        assert answer.status_code == 200, address
        assert "immutable" in answer.headers["Cache-Control"], address


@pytest.mark.parametrize("version", ["", "@0000000000000000/"])
def test_files_without_the_current_version_are_revalidated(
    visitor: httpx.Client, script: str, version: str
) -> None:
    path = script.split("/", 4)[4]
    answer = visitor.get(f"/web/static/{version}{path}")
    assert answer.content == visitor.get(script).content
    assert answer.headers["Cache-Control"] == "no-cache"
    again = visitor.get(answer.url.path, headers={"If-None-Match": answer.headers["ETag"]})
    assert again.status_code == 304


def test_text_is_sent_compressed_to_clients_that_accept_it(visitor: httpx.Client, script: str) -> None:
    packed = visitor.get(script)
    plain = visitor.get(script, headers={"Accept-Encoding": "identity"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in plain.headers
    assert packed.content == plain.content
    assert packed.num_bytes_downloaded < plain.num_bytes_downloaded


@pytest.mark.parametrize("path", ["@/", "@0/", "js/", "js", "../base.html", "..%2f__init__.py", "%00"])
def test_unknown_files_are_missing(visitor: httpx.Client, path: str) -> None:
    assert visitor.get(f"/web/static/{path}").status_code == 404
