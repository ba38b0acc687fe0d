"""Standalone pages with a backend: sign-in, order and submission."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import Browser, expect
from tests.core.api.conftest import import_truth
from tests.core.servers import write_oracle
from tests.hub import token_on
from tests.ports import free_ports

from collidium.testing import browser as browsing
from collidium.testing.browser import Watch
from collidium.testing.server import ServerProcess

from .apart import Pages, served_apart
from .visiting import Visitor

SUBMIT = "/leaderboard/tracking/submit"

(PORT,) = free_ports(1)
ORIGIN = f"http://127.0.0.1:{PORT}"
WEB_ENVIRONMENT = {"PLATFORM_CORS_ORIGINS": ORIGIN, "PLATFORM_OAUTH_REDIRECT_URIS": f"{ORIGIN}/web/callback"}


@pytest.fixture(scope="module")
def apart(web: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pages]:
    import_truth(web)
    with served_apart(tmp_path_factory.mktemp("apart"), web.base_url, port=PORT) as pages:
        yield pages


@pytest.fixture(scope="module")
def token(web: ServerProcess) -> str:
    return token_on(web.data_dir / "hub", "carrier")


def test_standalone_pages_act_for_their_user(
    apart: Pages, web: ServerProcess, token: str, tmp_path: Path
) -> None:
    """By forms alone; the session is the pages' own."""
    write_oracle(tmp_path / "oracle.parquet")
    with Visitor(apart.base_url) as visitor:
        assert visitor.sign_in(token).status_code == 303
        assert visitor.is_signed_in
        form = {"csrf_token": visitor.csrf, "action": "submit", "model_repo": "carrier/model"}
        file = {"predictions": (tmp_path / "oracle.parquet").read_bytes()}
        answer = visitor.post(SUBMIT, data=form, files=file, headers=visitor.own)
        assert answer.status_code == 303, answer.text
        assert "Rank 1" in visitor.get(answer.headers["Location"]).text
        ordered = visitor.fill_in(
            "/simulate", channel="ttbar", events="1", pileup="0", seed="1", key="k" * 32
        )
        assert ordered.status_code == 303, ordered.text
        assert visitor.get(ordered.headers["Location"]).status_code == 200
        assert visitor.get("/web/balance").json()["credits"] > 0
        # The API is elsewhere, and has never heard of this session.
        assert visitor.get("/v1/me").status_code == 404
        assert visitor.get(f"{web.base_url}/v1/me").status_code == 401
        visitor.fill_in("/web/sign-out")
        assert not visitor.is_signed_in


def test_script_submits_from_standalone_pages(
    apart: Pages, web: ServerProcess, token: str, browser: Browser, tmp_path: Path
) -> None:
    bad = tmp_path / "bad.parquet"
    pq.write_table(pa.table({"event_id": [3, 3], "hit_id": [-5, -5], "track_id": [0, -9]}), bad)
    write_oracle(tmp_path / "oracle.parquet", seed=1)
    with browser.new_context(base_url=apart.base_url) as context:
        watch = Watch(context, apart.base_url, web.base_url)
        watch.allow("status of 422")
        page = context.new_page()
        browsing.sign_in(page, token)
        page.goto(SUBMIT)
        file = page.get_by_label("A parquet file of predictions")
        file.set_input_files(bad)
        page.get_by_role("button", name="Check").click()
        expect(page.locator("#outcome .problems > li")).to_have_count(2)
        file.set_input_files(tmp_path / "oracle.parquet")
        page.get_by_role("button", name="Submit").click()
        expect(page.get_by_role("heading", name="Rank")).to_be_visible()
        page.get_by_text("carrier").first.click()
        expect(page.locator("[data-credits]")).to_contain_text("credit")
        assert watch.problems == []
