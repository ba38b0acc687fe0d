"""Standalone pages without backend and hub."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.ports import free_ports

from collidium.testing.processes import isolated_environment
from collidium.testing.server import run_command

from .apart import Pages, served_apart
from .visiting import Visitor


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    # No server listens there.
    with served_apart(tmp_path_factory.mktemp("web"), "http://127.0.0.1:1") as pages:
        yield pages


@pytest.fixture
def visitor(pages: Pages) -> Iterator[Visitor]:
    with Visitor(pages.base_url) as visitor:
        yield visitor


def test_styles_need_no_backend(visitor: Visitor) -> None:
    assert visitor.get("/web/static/css/site.css").headers["Content-Type"].startswith("text/css")


def test_a_sign_in_says_that_the_hub_is_away(visitor: Visitor) -> None:
    answer = visitor.get("/web/sign-in")
    assert answer.status_code == 503
    assert "The identity provider cannot be reached" in answer.text
    assert "Traceback" not in answer.text
    assert "Retry-After" in answer.headers


def test_an_unknown_address_has_a_page(visitor: Visitor) -> None:
    for path in ("/nothing", "/events/a/b/c", "/web/nothing", "/v1/me"):
        answer = visitor.get(path)
        assert answer.status_code == 404
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "Page not found" in answer.text


def test_scripts_and_pages_know_where_the_backend_is(visitor: Visitor) -> None:
    answer = visitor.get("/nothing")
    assert 'data-api="http://127.0.0.1:1"' in answer.text
    assert "connect-src 'self' http://127.0.0.1:1;" in answer.headers["Content-Security-Policy"]


def test_pages_cannot_be_their_own_backend(pages: Pages) -> None:
    (port,) = free_ports(1)
    command = ("web", "--backend", f"http://127.0.0.1:{port}", "--port", str(port))
    done = run_command(command, isolated_environment(pages.directory), pages.directory)
    assert done.returncode == 1
    assert "cannot be their own backend" in done.stderr


def test_standalone_pages_keep_sessions_in_a_file(pages: Pages, visitor: Visitor) -> None:
    visitor.get("/web/sign-in")
    assert pages.stop() == 0
    kept = sorted(str(path.relative_to(pages.data_dir)) for path in pages.data_dir.rglob("*"))
    assert kept == ["collidium.sqlite3", "collidium.sqlite3.migration-lock", "secret-key", "uploads"]
    assert "Traceback" not in pages.log
