"""Single sign-on with a provider in a process of its own, by HTTP: accounts, tokens, outages."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.core.api.conftest import import_truth
from tests.hub import token_on
from tests.plugins.openid_provider import OpenIDProvider, serving
from tests.plugins.webapps.visiting import Visitor
from tests.waiting import eventually

from collidium import plugins, settings
from collidium.server.doctor import PARTS, run_check
from collidium.testing.server import ServerProcess


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenIDProvider]:
    with serving() as provider:
        yield provider


@pytest.fixture(scope="module")
def web(provider: OpenIDProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    events = tmp_path_factory.mktemp("site") / "events"
    pq.write_table(pa.table({"event_id": range(2)}), events)
    environment = {
        "PLATFORM_RUN_MODE": "real",
        "PLATFORM_RUNNER": "local",
        "PLATFORM_PIPELINE_COMMAND": f"cp {events} {{output}}/particles.parquet",
        "PLATFORM_POLL_SECONDS": "0.1",
        "PLATFORM_OIDC_ISSUER": provider.issuer,
        "PLATFORM_OIDC_CLIENT_ID": "pages",
        "PLATFORM_OIDC_SCOPES": "openid,profile,email",
        "PLATFORM_OIDC_CLIENT_SECRET": "known to two",
        "PLATFORM_OIDC_OPERATORS": "lab-admins=accounts,lab-admins=reports,desk=reports",
        "PLATFORM_SIGN_INS_PER_MINUTE": "1000",
    }
    with ServerProcess(tmp_path_factory.mktemp("oidc"), env=environment) as server:
        yield server


@pytest.fixture
def visitor(web: ServerProcess) -> Iterator[Visitor]:
    with Visitor(web.base_url) as visitor:
        yield visitor


def leave(visitor: Visitor, next_page: str = "/") -> str:
    """Choose the provider; its address to which that leads."""
    page = visitor.get("/web/sign-in", params={"next": next_page})
    found = re.search(r'href="(/sso/sign-in\?[^"]*)"', page.text)
    assert found is not None, page.text
    answer = visitor.get(unescape(found[1]))
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"]


def signed_in(visitor: Visitor, provider: OpenIDProvider, subject: str) -> str:
    """Sign in; the account's name."""
    answer = visitor.get(provider.agree(leave(visitor, "/events?event=3"), subject))
    assert (answer.status_code, answer.headers.get("Location")) == (303, "/events?event=3"), answer.text
    return str(visitor.get("/v1/me").json()["hub_username"])


def test_person_signs_in_by_either_way(
    visitor: Visitor, web: ServerProcess, provider: OpenIDProvider
) -> None:
    provider.add("42", preferred_username="ada", email="ada@hub.example")
    assert signed_in(visitor, provider, "42") == "ada.sso"
    assert "ada.sso" in visitor.get("/").text
    visitor.fill_in("/web/sign-out")
    assert not visitor.is_signed_in

    page = visitor.get("/web/sign-in", params={"next": "/models"})
    found = re.search(r'href="(/web/sign-in\?[^"]*with=hub)"', page.text)
    assert found is not None
    address = visitor.get(unescape(found[1])).headers["Location"]
    answer = visitor.get(visitor.consent(address, token_on(web.data_dir / "hub", "ada")))
    assert answer.headers["Location"] == "/models"
    assert visitor.get("/v1/me").json()["hub_username"] == "ada", "the hub's ada is another person"
    assert "token of the <a" in visitor.get("/sso").text
    assert visitor.fill_in("/sso").status_code == 403


def test_account_makes_a_token_for_programs(visitor: Visitor, provider: OpenIDProvider) -> None:
    provider.add("7", preferred_username="grace")
    assert visitor.get("/sso").status_code == 401
    signed_in(visitor, provider, "7")
    assert "no token for programs" in visitor.get("/sso").text
    tokens = []
    for _ in range(2):
        page = visitor.fill_in("/sso")
        assert page.headers["Cache-Control"] == "private, no-store"
        found = re.search(r"collidium_[A-Za-z0-9_-]{43}", page.text)
        assert found is not None, page.text
        tokens.append(found[0])
        assert found[0] not in visitor.get("/sso").text
    assert visitor.post("/sso", headers=visitor.own).status_code == 403, "without the secret of its session"
    answers = [
        httpx.get(f"{visitor.origin}/v1/me", headers={"Authorization": f"Bearer {token}"}, trust_env=False)
        for token in tokens
    ]
    assert [answer.status_code for answer in answers] == [401, 200]
    assert answers[1].json()["hub_username"] == "grace.sso"


def test_groups_admit_to_challenges(visitor: Visitor, web: ServerProcess, provider: OpenIDProvider) -> None:
    import_truth(web)
    body = {"name": "for-lab", "task": "tracking", "access": "members", "organisation": "lab.sso"}
    operator = {"X-Admin-Token": web.admin_token}
    assert visitor.post("/admin/challenges", json=body, headers=operator).status_code == 201
    for groups, admitted in ((["/lab", "else where"], True), (["/other"], False)):
        provider.add("8", preferred_username="emmy", groups=groups)
        signed_in(visitor, provider, "8")
        assert visitor.get("/v1/challenges/for-lab/team").json()["admitted"] is admitted
        visitor.fill_in("/web/sign-out")


def test_groups_make_operators(visitor: Visitor, web: ServerProcess, provider: OpenIDProvider) -> None:
    provider.add("9", preferred_username="olga", groups=["/lab-admins", "users"])
    signed_in(visitor, provider, "9")
    found = re.search(r"collidium_[A-Za-z0-9_-]{43}", visitor.fill_in("/sso").text)
    assert found is not None

    def ask(method: str, path: str, **body: object) -> int:
        headers = {"X-Admin-Token": found[0]}
        address = f"{web.base_url}/admin/{path}"
        return httpx.request(method, address, headers=headers, json=body, trust_env=False).status_code

    gift = {"hub_username": "olga.sso", "delta": 1, "reason": "a talk"}
    assert [ask("POST", "grant", **gift), ask("GET", "audit"), ask("GET", "operators")] == [200, 200, 403]
    with httpx.Client(
        base_url=web.base_url, headers={"X-Admin-Token": web.admin_token}, trust_env=False
    ) as admin:
        assert admin.get("/admin/audit?limit=1").json()[0]["actor"] == "olga.sso"
        assert admin.post("/admin/operators", json={"name": "eve.sso", "scopes": ["all"]}).status_code == 422
        long_ago = datetime.now(UTC) - timedelta(hours=13)
        with closing(sqlite3.connect(web.data_dir / "collidium.sqlite3")) as database, database:
            database.execute("UPDATE sso_accounts SET signed_in_at = ?", (long_ago.isoformat(" "),))
        assert ask("GET", "audit") == 401, "the groups are old"
        visitor.fill_in("/web/sign-out")
        signed_in(visitor, provider, "9")
        assert ask("GET", "audit") == 200
        assert admin.post("/admin/ban", json={"hub_username": "olga.sso", "banned": True}).is_success
        assert ask("GET", "audit") == 401
        assert admin.post("/admin/ban", json={"hub_username": "olga.sso", "banned": False}).is_success
    provider.add("9", preferred_username="olga", groups=["/users", "/lab-admins/former"])
    visitor.fill_in("/web/sign-out")
    signed_in(visitor, provider, "9")
    assert ask("GET", "audit") == 401


def test_verified_addresses_admit_by_their_domain(
    visitor: Visitor, web: ServerProcess, provider: OpenIDProvider
) -> None:
    body = {"name": "for-cern", "task": "tracking", "access": "members", "organisation": "@CERN.ch"}
    operator = {"X-Admin-Token": web.admin_token}
    assert visitor.post("/admin/challenges", json=body, headers=operator).status_code == 201
    for email, verified, admitted in (
        ("Lise@cern.CH", True, True),
        ("lise@cern.ch", "true", False),
        ("lise@cern.ch", False, False),
        ("lise@lab.cern.ch", True, False),
        ("cern.ch", True, False),
        (["lise@cern.ch"], True, False),
    ):
        provider.add("9", preferred_username="lise", email=email, email_verified=verified)
        signed_in(visitor, provider, "9")
        assert visitor.get("/v1/challenges/for-cern/team").json()["admitted"] is admitted, email
        visitor.fill_in("/web/sign-out")


def test_order_without_a_hub_is_downloaded(visitor: Visitor, provider: OpenIDProvider) -> None:
    signed_in(visitor, provider, "orders")
    answer = visitor.call("POST", "/v1/simulate", json={"channel": "single_muon", "events": 2, "pileup": 0})
    assert answer.status_code == 202, answer.text
    where = answer.headers["Location"]
    eventually(lambda: visitor.get(where).json()["state"] == "completed")
    (file,) = visitor.get(f"{where}/output").json()
    page = visitor.get(where.replace("/v1/", "/simulate/")).text
    assert f'href="{where}/output/{file["path"]}"' in page
    assert len(visitor.get(f"{where}/output/{file['path']}").content) == file["size_bytes"]


def test_tokens_and_codes_are_not_stored_or_logged(
    visitor: Visitor, web: ServerProcess, provider: OpenIDProvider
) -> None:
    back = provider.agree(leave(visitor), "secretive")
    visitor.get(back)
    token = re.search(r"collidium_[A-Za-z0-9_-]{43}", visitor.fill_in("/sso").text)
    assert token is not None
    kept = b"".join(path.read_bytes() for path in web.data_dir.glob("collidium.sqlite3*"))
    kept += web.log().encode()
    for secret in (token[0], parse_qs(urlsplit(back).query)["code"][0]):
        assert secret.encode() not in kept
    assert not re.search(rb"collidium_[A-Za-z0-9_-]{43}", kept), "the token of the session"


def test_a_callback_of_another_provider_is_rejected(visitor: Visitor, provider: OpenIDProvider) -> None:
    back = provider.agree(leave(visitor), "42")
    query = urlsplit(back).query
    answer = visitor.get(f"/web/callback?{query}")
    assert answer.status_code == 400
    assert "did not begin" in answer.text
    assert visitor.get(back).status_code == 400, "it was used up"
    assert not visitor.is_signed_in


@pytest.mark.parametrize(
    ("subject", "claims"),
    [
        ("x" * 10_000, {}),
        ("wrong-name", {"preferred_username": 3}),
        ("wrong-groups", {"groups": {"atlas": True}}),
    ],
)
def test_impossible_claims_do_not_sign_in(
    visitor: Visitor, provider: OpenIDProvider, subject: str, claims: dict[str, object]
) -> None:
    if claims:
        provider.add(subject, **claims)
    assert visitor.get(provider.agree(leave(visitor), subject)).status_code == 502
    assert not visitor.is_signed_in


def test_provider_that_is_away_is_asked_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    with serving() as provider:
        pass
    environment = {"PLATFORM_OIDC_ISSUER": provider.issuer}
    with (
        ServerProcess(tmp_path_factory.mktemp("away"), env=environment) as web,
        Visitor(web.base_url) as visitor,
    ):
        answer = visitor.get("/sso/sign-in")
        assert answer.status_code == 503
        assert int(answer.headers["Retry-After"]) > 0
        with serving(int(urlsplit(provider.issuer).port or 0)):
            address = leave(visitor)
            back = provider.agree(address, "42")
        assert visitor.get(back).status_code == 503
        assert not visitor.is_signed_in


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({}, "ok", "responds as an OpenID provider"),
        ({"oidc_scopes": ["openid", "cows"]}, "warning", "PLATFORM_OIDC_SCOPES: cows"),
        ({"oidc_scopes": ["profile"]}, "failed", "no `openid`"),
        ({"oidc_issuer": "/elsewhere"}, "failed", "the identity provider"),
    ],
)
async def test_the_doctor_asks_the_provider(
    provider: OpenIDProvider, tmp_path: Path, changed: dict[str, Any], status: str, words: str
) -> None:
    issuer = provider.issuer + changed.pop("oidc_issuer", "")
    chosen = settings.load(data_dir=tmp_path, oidc_issuer=issuer, **changed)
    name = "single sign-on"
    found = await run_check(name, chosen, plugins.load(), *PARTS[name])
    assert (found.name, found.status) == (name, status), found
    assert words in f"{found.found} {found.advice}"
