"""Error pages in a real browser: messages for users, never blank, escaped."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest
from huggingface_hub import HfApi
from playwright.sync_api import Page, expect
from tests.plugins.webapps.apart import Pages, served_apart
from tests.plugins.webapps.conftest import SignIn

from collidium.demo import EVENTS_DIRECTORY
from collidium.testing.browser import Watch, overflow, serious_findings
from collidium.testing.server import ServerProcess

PAGES = ("/", "/events", "/simulate", "/leaderboard/tracking", "/models")
#: What runs as a script where it is not escaped, and letters that turn the line around.
HOSTILE = '<img src=x onerror="window.struck=1"><script>window.struck=1</script>\u202egnp'
LONG = "a" * 90


@pytest.fixture(scope="module")
def without_backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    """Pages whose server is away."""
    with served_apart(tmp_path_factory.mktemp("apart"), "http://127.0.0.1:1") as pages:
        yield pages


def require_shown(page: Page) -> None:
    """There is a page with a heading, words in it, and a way on."""
    assert len(page.get_by_role("main").inner_text()) > 40
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_role("navigation", name="Main")).to_be_visible()
    assert serious_findings(page) == []


@pytest.mark.parametrize("path", PAGES)
def test_the_backend_is_away(path: str, page: Page, watch: Watch, without_backend: Pages) -> None:
    watch.allow("status of 50|another host|ERR_")
    page.goto(f"{without_backend.base_url}{path}")
    require_shown(page)
    expect(page.get_by_role("main")).to_contain_text(re.compile("cannot|does not|did not"))
    expect(page.get_by_role("main")).not_to_contain_text("PLATFORM_BACKEND right")


def test_a_session_that_has_ended(page: Page, watch: Watch, web: ServerProcess, sign_in: SignIn) -> None:
    """What was typed is not lost: the form is there again after the next sign-in."""
    watch.allow("status of 401")
    sign_in(page, "walter")
    page.goto("/simulate")
    with closing(sqlite3.connect(web.data_dir / "collidium.sqlite3", timeout=10)) as db, db:
        db.execute("DELETE FROM web_sessions")
    page.get_by_role("button", name="Order").click()
    expect(page.get_by_role("main")).to_contain_text(re.compile("sign in", re.IGNORECASE))
    require_shown(page)
    page.get_by_role("main").get_by_role("link", name="Sign in").first.click()
    expect(page.get_by_label("Token of your account")).to_be_visible()


def test_hostile_names_are_escaped(page: Page, web: ServerProcess, token: Callable[[str], str]) -> None:
    """Whatever stands in a repository of the hub is shown as text, on a phone, too."""
    mallory = HfApi(f"{web.base_url}/hub", token("mallory"))
    for kind, name in (("model", f"mallory/{LONG}"), ("dataset", "mallory/events")):
        mallory.create_repo(name, repo_type=kind)
        mallory.upload_file(
            path_or_fileobj=hostile_card(), path_in_repo="README.md", repo_id=name, repo_type=kind
        )
    mallory.upload_file(
        path_or_fileobj=(EVENTS_DIRECTORY / "tracker_hits.parquet").read_bytes(),
        path_in_repo=f"data/{LONG}_tracker_hits/train-00000-of-00001.parquet",
        repo_id="mallory/events",
        repo_type="dataset",
    )
    page.set_viewport_size({"width": 360, "height": 740})
    for path in ("/models", f"/models/mallory/{LONG}", "/events", "/"):
        page.goto(path, wait_until="networkidle")
        assert page.evaluate("window.struck") is None
        assert overflow(page) == 0, path
        require_shown(page)


def hostile_card() -> bytes:
    tags = ["collidium", "collidium-task:tracking", HOSTILE, LONG]
    front = {"tags": tags, "library_name": HOSTILE, "license": HOSTILE, "description": HOSTILE}
    return f"---\n{json.dumps(front)}\n---\n{HOSTILE}\n".encode()
