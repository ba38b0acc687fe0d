"""The API called with a browser's cookie, by scripts of the pages and by other sites."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from huggingface_hub import HfApi
from tests.hub import token_on

from collidium.testing.server import ServerProcess

from .visiting import Visitor

ORDER = {"preset": "ttbar-quick"}
SESSION = "collidium_session"


@pytest.fixture
def anna(web: ServerProcess, token: Callable[[str], str]) -> Iterator[Visitor]:
    """A user who is signed in."""
    with Visitor(web.base_url) as visitor:
        assert visitor.sign_in(token("anna")).status_code == 303
        yield visitor


def orders(visitor: Visitor) -> int:
    return len(visitor.get("/v1/requests").json())


# -- what scripts do ----------------------------------------------------------------------------------


def test_script_orders_once_for_a_key(anna: Visitor) -> None:
    before, key = orders(anna), {"Idempotency-Key": os.urandom(8).hex()}
    answers = [anna.call("POST", "/v1/simulate", json=ORDER, headers=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    first, second = (answer.json()["request_id"] for answer in answers)
    assert first == second
    assert anna.get(answers[0].headers["Location"]).json()["request_id"] == first
    assert orders(anna) == before + 1


def test_header_decides_over_the_cookie(anna: Visitor, token: Callable[[str], str]) -> None:
    other = {"Authorization": f"Bearer {token('berta')}"}
    assert anna.get("/v1/me", headers=other).json()["hub_username"] == "berta"
    # 200: the same order of another test was completed meanwhile.
    assert anna.post("/v1/simulate", json=ORDER, headers=other).status_code in {200, 202}
    for wrong in ("Bearer wrong", "Basic YTpi", "Bearer", ""):
        assert anna.get("/v1/me", headers={"Authorization": wrong}).status_code == 401


# -- what other sites must not ------------------------------------------------------------------------


def proofs(visitor: Visitor) -> Iterator[dict[str, str]]:
    """Headers that prove nothing, or not enough."""
    own, secret = visitor.own, {"X-CSRF-Token": visitor.csrf}
    yield {}
    yield secret
    yield {**secret, "Sec-Fetch-Site": "same-origin"}
    yield own
    yield {**own, "X-CSRF-Token": ""}
    yield {**own, "X-CSRF-Token": "A" * 43}
    yield {**own, "X-CSRF-Token": visitor.cookies[SESSION]}
    for site in ("cross-site", "same-site", "none"):
        yield {**own, **secret, "Sec-Fetch-Site": site}
    host = urlsplit(visitor.origin).netloc
    for origin in (
        "",
        "null",
        "http://pages.example",
        f"http://{host}.example",
        f"http://{host}@x",
        "http://[::1",
        "http://127.0.0.1:1",
    ):
        yield {**secret, "Origin": origin}
        yield {**secret, "Origin": origin, "Sec-Fetch-Site": "same-origin"}


def test_request_without_proof_changes_nothing(anna: Visitor) -> None:
    before = orders(anna)
    for headers in proofs(anna):
        for method, path in (
            ("POST", "/v1/simulate"),
            ("PUT", "/v1/me/webhook"),
            ("DELETE", "/v1/me/webhook"),
        ):
            answer = anna.request(method, path, json=ORDER if method == "POST" else {}, headers=headers)
            assert answer.status_code == 403, headers
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert "nothing was done" in answer.json()["detail"]
        sent = {"content": b"PAR1", "headers": headers}
        assert anna.post("/v1/benchmark/tracking/submit", **sent).status_code == 403
    form = {"csrf_token": anna.csrf, **ORDER}
    assert anna.post("/v1/simulate", data=form, headers=anna.own).status_code == 403
    assert orders(anna) == before
    assert anna.get("/v1/me/webhook").status_code == 404


def test_other_origins_read_nothing_with_the_cookie(anna: Visitor) -> None:
    answer = anna.get("/v1/me", headers={"Origin": "http://pages.example"})
    assert "Access-Control-Allow-Credentials" not in answer.headers
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "x-csrf-token"}
    answer = anna.options("/v1/simulate", headers={"Origin": "http://pages.example", **preflight})
    assert "x-csrf-token" not in answer.headers.get("Access-Control-Allow-Headers", "").lower()


@pytest.mark.parametrize(("site", "status"), [("same-origin", 200), ("same-site", 401), ("cross-site", 401)])
def test_other_sites_load_nothing_with_the_cookie(anna: Visitor, site: str, status: int) -> None:
    assert anna.get("/v1/me", headers={"Sec-Fetch-Site": site}).status_code == status


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/admin/overview"),
        ("GET", "/admin/audit"),
        ("POST", "/admin/ban"),
        ("POST", "/admin/grant"),
        ("GET", "/v1/../admin/overview"),
        ("GET", "//admin/overview"),
    ],
)
def test_cookie_opens_no_admin_endpoint(anna: Visitor, method: str, path: str) -> None:
    sent = {"hub_username": "anna", "banned": False}
    answer = anna.call(method, path, json=sent, headers={"X-Admin-Token": ""})
    assert answer.status_code in {401, 404}


def test_cookie_is_accepted_below_v1_alone(anna: Visitor) -> None:
    assert anna.get("/compat/colliderml/v1/me").status_code == 401
    assert anna.get("/hub/api/whoami-v2").status_code == 401
    assert anna.call("POST", "/hub/api/repos/create", json={"name": "x", "type": "model"}).status_code == 401


@pytest.mark.parametrize("cookie", ["x", "A" * 43, "A" * 5000, "é".encode().hex(), "' OR 1=1 --"])
def test_made_up_cookie_is_refused(web: ServerProcess, cookie: str) -> None:
    headers = {"Cookie": f"{SESSION}={cookie}"}
    assert httpx.get(f"{web.base_url}/v1/me", headers=headers, trust_env=False).status_code == 401
    answer = httpx.post(f"{web.base_url}/v1/simulate", headers=headers, json=ORDER, trust_env=False)
    assert answer.status_code in {401, 403}


def test_uploaded_page_is_not_rendered(anna: Visitor, token: Callable[[str], str]) -> None:
    """A page of a user's, opened at our origin, would act for every user who opens it."""
    api = HfApi(f"{anna.origin}/hub", token("mallory"))
    api.create_repo("mallory/trap", repo_type="dataset", exist_ok=True)
    for name in ("index.html", "page.svg", "page.xhtml"):
        script = b"<script>fetch('/v1/me')</script>"
        api.upload_file(
            path_or_fileobj=script, path_in_repo=name, repo_id="mallory/trap", repo_type="dataset"
        )
        answer = anna.get(f"/hub/datasets/mallory/trap/resolve/main/{name}", follow_redirects=True)
        assert answer.content == script
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert anna.get("/v1/me").headers["X-Content-Type-Options"] == "nosniff"


# -- two servers --------------------------------------------------------------------------------------


@pytest.fixture
def two(migrated_database_url: str, tmp_path: Path) -> Iterator[tuple[ServerProcess, ServerProcess]]:
    """Two servers with data directories of their own, on one database; the first has the hub."""
    key = {"PLATFORM_SECRET_KEY": "known to both"}
    with ExitStack() as stack:
        first = stack.enter_context(ServerProcess(tmp_path / "first", migrated_database_url, key))
        hub = {"PLATFORM_HUB_URL": f"{first.base_url}/hub"}
        second = stack.enter_context(
            ServerProcess(tmp_path / "second", migrated_database_url, {**key, **hub})
        )
        yield first, second


def test_two_servers_share_sessions(two: tuple[ServerProcess, ServerProcess]) -> None:
    token = token_on(two[0].data_dir / "hub", "anna")
    with Visitor(two[0].base_url) as first, Visitor(two[1].base_url) as second:
        first.sign_in(token)
        second.cookies.set(SESSION, first.cookies[SESSION])
        assert second.get("/v1/me").json()["hub_username"] == "anna"
        assert second.csrf == first.csrf
        assert second.call("POST", "/v1/simulate", json=ORDER).status_code == 202
        assert orders(first) == 1
        banned = {"hub_username": "anna", "banned": True}
        admin = {"X-Admin-Token": two[1].admin_token}
        assert second.post("/admin/ban", json=banned, headers=admin).status_code == 200
        assert first.get("/v1/me").status_code == 403
        second.post("/admin/ban", json={**banned, "banned": False}, headers=admin)
        assert first.get("/v1/me").status_code == 200
        assert second.fill_in("/web/sign-out").status_code == 303
        assert first.get("/v1/me").status_code == 401
        assert not first.is_signed_in
