"""The local hub as an OpenID provider: the sign-in, and invalid requests."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import httpx
import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import HfHubHTTPError, RepositoryNotFoundError
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import KeySet
from tests.counts import LONG
from tests.hub import HubServer

from collidium.errors import ConfigurationError
from collidium.settings import Settings
from collidium.testing.server import ServerProcess
from collidium_plugins.local_hub import store
from collidium_plugins.local_hub.accounts import OF_ALL, OF_ONE, WINDOW_SECONDS, Attempts, digest
from collidium_plugins.local_hub.failures import HubFailure
from collidium_plugins.local_hub.openid.requests import (
    AuthorizationRequest,
    RegisteredClient,
    client_of,
    seal,
    unseal,
)
from collidium_plugins.local_hub.store import sign

ELSEWHERE: Final = "http://pages.test:8443/web/callback"
EVERYTHING: Final = "openid profile read-repos write-repos manage-repos"


def own_headers(http: httpx.Client) -> dict[str, str]:
    """What a browser reports of a form of the hub's own pages."""
    return {"Origin": f"http://{http.base_url.netloc.decode()}"}


class Application:
    """One sign-in of the pages: what they send, with their own state, nonce and PKCE verifier."""

    def __init__(self, hub_url: str, scope: str = EVERYTHING, client: httpx.Client | None = None) -> None:
        self.http = client or httpx.Client(base_url=hub_url, timeout=30, trust_env=False)
        self.verifier = secrets.token_urlsafe(48)
        self.redirect_uri = f"{hub_url.removesuffix('/hub')}/web/callback"
        self.query = {
            "client_id": "collidium-web",
            "redirect_uri": self.redirect_uri,
            "response_type": "code",
            "scope": scope,
            "state": secrets.token_urlsafe(16),
            "nonce": secrets.token_urlsafe(16),
            "code_challenge": challenge_of(self.verifier),
            "code_challenge_method": "S256",
        }

    def ask(self, **changes: str | None) -> httpx.Response:
        wanted = {name: value for name, value in (self.query | changes).items() if value is not None}
        return self.http.get("/oauth/authorize", params=wanted)

    def answer(self, page: httpx.Response, token: str, decision: str = "allow") -> httpx.Response:
        form = {"ticket": ticket_in(page), "token": token, "decision": decision}
        return self.http.post("/oauth/authorize", data=form, headers=own_headers(self.http))

    def code(self, token: str) -> str:
        answer = self.answer(self.ask(), token)
        assert answer.status_code == 303, answer.text
        came = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
        assert came["state"] == self.query["state"]
        return came["code"]

    def exchange(self, code: str, /, **changes: str) -> httpx.Response:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_uri,
            "client_id": "collidium-web",
            "code_verifier": self.verifier,
        }
        return self.http.post("/oauth/token", data=form | changes)

    def refresh(self, refresh_token: str, /, **changes: str) -> httpx.Response:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": refresh_token,
            "client_id": "collidium-web",
        }
        return self.http.post("/oauth/token", data=form | changes)

    def tokens(self, token: str) -> dict[str, Any]:
        answer = self.exchange(self.code(token))
        assert answer.status_code == 200, answer.text
        document: dict[str, Any] = answer.json()
        return document

    def status(self, access_token: str) -> int:
        """What whoami says to a token."""
        headers = {"Authorization": f"Bearer {access_token}"}
        return self.http.get("/api/whoami-v2", headers=headers).status_code


def challenge_of(verifier: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def ticket_in(page: httpx.Response) -> str:
    found = re.search(r'name="ticket" value="([^"]+)"', page.text)
    assert found, page.text
    return found[1]


def changed(hub: HubServer, statement: str, *values: object) -> None:
    """A change to what the hub keeps, as time would make it."""
    with closing(sqlite3.connect(hub.directory / "hub.sqlite3", timeout=30)) as db, db:
        assert db.execute(statement, values).rowcount > 0


@pytest.fixture
def application(hub: HubServer) -> Iterator[Application]:
    made = Application(hub.url)
    yield made
    made.http.close()


@pytest.fixture
def token(hub: HubServer) -> str:
    return hub.token("lise")


# -- the whole way -------------------------------------------------------------------------------------------


def test_discovery_document_names_the_endpoints(hub: HubServer, application: Application) -> None:
    document = application.http.get("/.well-known/openid-configuration").json()
    assert document["issuer"] == hub.url
    for name in ("authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri"):
        assert document[name].startswith(f"{hub.url}/oauth/")
    assert document["code_challenge_methods_supported"] == ["S256"]
    assert document["token_endpoint_auth_methods_supported"] == ["none"]


def test_keys_are_read_while_another_process_writes(hub: HubServer, application: Application) -> None:
    keys = application.http.get("/oauth/jwks").json()
    with closing(sqlite3.connect(hub.directory / "hub.sqlite3", timeout=30)) as db:
        db.execute("BEGIN IMMEDIATE")
        assert application.http.get("/oauth/jwks", timeout=5).json() == keys


def test_a_user_signs_in(hub: HubServer, application: Application, token: str) -> None:
    page = application.ask()
    assert page.status_code == 200
    assert "Make and delete repositories under your name" in page.text
    given = application.tokens(token)
    assert given["token_type"] == "bearer"
    assert given["expires_in"] == 8 * 3600
    assert given["scope"] == EVERYTHING
    keys = KeySet.import_key_set(application.http.get("/oauth/jwks").json())
    claims = jwt.decode(given["id_token"], keys, ["RS256"]).claims
    jwt.JWTClaimsRegistry(
        iss={"essential": True, "value": hub.url},
        aud={"essential": True, "value": "collidium-web"},
        nonce={"essential": True, "value": application.query["nonce"]},
        exp={"essential": True},
        iat={"essential": True},
    ).validate(claims)
    assert claims["preferred_username"] == claims["name"] == "lise"
    half = hashlib.sha256(given["access_token"].encode()).digest()[:16]
    assert claims["at_hash"] == base64.urlsafe_b64encode(half).rstrip(b"=").decode()
    headers = {"Authorization": f"Bearer {given['access_token']}"}
    for method in ("GET", "POST"):
        answer = application.http.request(method, "/oauth/userinfo", headers=headers)
        assert answer.json() == {
            "sub": claims["sub"],
            "name": "lise",
            "preferred_username": "lise",
            "orgs": [],
        }
        assert answer.headers["Cache-Control"] == "no-store"


def test_standalone_pages_are_redirected_to(application: Application, token: str) -> None:
    application.redirect_uri = application.query["redirect_uri"] = ELSEWHERE
    page = application.ask()
    assert "form-action 'self' http://pages.test:8443;" in page.headers["Content-Security-Policy"]
    assert "http://pages.test:8443" in page.text
    answer = application.answer(page, token)
    assert answer.headers["Location"].startswith(f"{ELSEWHERE}?code=")


def test_pages_have_security_headers(application: Application, token: str) -> None:
    pages = [application.ask(), application.ask(client_id="x"), application.answer(application.ask(), "no")]
    assert [page.status_code for page in pages] == [200, 400, 401]
    for page in pages:
        assert page.headers["Referrer-Policy"] == "same-origin"
        policy = page.headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; style-src 'self';")
        assert "frame-ancestors 'none'; base-uri 'none'" in policy
        assert "unsafe" not in policy
        assert page.headers["Cache-Control"] == "no-store"
        assert page.headers["X-Frame-Options"] == "DENY"
        assert page.headers["Content-Type"] == "text/html; charset=utf-8"
        assert "<script" not in page.text
        assert "style=" not in page.text
    (sheet,) = re.findall(r'href="(/hub/oauth/pages\.css[^"]+)"', pages[0].text)
    answer = application.http.get(f"http://127.0.0.1:{application.http.base_url.port}{sheet}")
    assert answer.headers["Content-Type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["Cache-Control"]
    sent = application.answer(application.ask(), token)
    assert sent.headers["Referrer-Policy"] == "no-referrer"
    assert sent.headers["Cache-Control"] == "no-store"


def test_a_user_denies_access(application: Application) -> None:
    answer = application.answer(application.ask(), "", decision="deny")
    assert answer.status_code == 303
    came = dict(parse_qsl(urlsplit(answer.headers["Location"]).query))
    assert came["error"] == "access_denied"
    assert came["state"] == application.query["state"]


# -- refused before the user is asked ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client_id", None),
        ("client_id", ""),
        ("client_id", "Collidium-web"),
        ("client_id", "<b>x</b>"),
        ("redirect_uri", None),
        ("redirect_uri", ""),
        ("redirect_uri", "{own}/web/callback/"),
        ("redirect_uri", "{own}/web/callback?next=/"),
        ("redirect_uri", "{own}/web/callback#x"),
        ("redirect_uri", "{own}/web/Callback"),
        ("redirect_uri", "{own}/web/../web/callback"),
        ("redirect_uri", "{own}@evil.test/web/callback"),
        ("redirect_uri", "http://localhost:{port}/web/callback"),
        ("redirect_uri", "http://[::1]:{port}/web/callback"),
        ("redirect_uri", "http://127.0.0.1/web/callback"),
        ("redirect_uri", "https://127.0.0.1:{port}/web/callback"),
        ("redirect_uri", "http://127.0.0.1:{port}.evil.test/web/callback"),
        ("redirect_uri", "http://pages.test/web/callback"),
        ("redirect_uri", "javascript:alert(1)"),
        ("redirect_uri", "//evil.test/web/callback"),
        ("redirect_uri", "/web/callback"),
    ],
)
def test_unknown_clients_and_addresses_are_not_redirected_to(
    hub: HubServer, application: Application, name: str, value: str | None
) -> None:
    if value is not None:
        value = value.replace("{own}", hub.url.removesuffix("/hub")).replace("{port}", str(hub.port))
    # Other mistakes do not make it a redirect.
    for more in ({}, {"response_type": "token"}, {"prompt": "none"}):
        answer = application.ask(**{name: value, **more})
        assert answer.status_code == 400
        assert "Location" not in answer.headers
        assert "This sign-in cannot continue" in answer.text
        assert "<b>x</b>" not in answer.text


@pytest.mark.parametrize(
    ("name", "status", "error"),
    [("client_id", 400, None), ("redirect_uri", 400, None), ("scope", 303, "invalid_request")],
)
def test_repeated_parameters_are_rejected(
    application: Application, name: str, status: int, error: str | None
) -> None:
    twice = urlencode([*application.query.items(), (name, application.query[name])])
    answer = application.http.get("/oauth/authorize", params=twice)
    assert answer.status_code == status
    came = dict(parse_qsl(urlsplit(answer.headers.get("Location", "")).query))
    assert came.get("error") == error


def test_redirects_return_to_the_host_the_hub_was_reached_by(hub: HubServer) -> None:
    # A page that asked under another name cannot have people sent to this one.
    with Application(f"http://localhost:{hub.port}/hub").http as reached:
        application = Application(f"http://localhost:{hub.port}/hub", client=reached)
        assert application.ask().status_code == 200
        own = f"http://127.0.0.1:{hub.port}/web/callback"
        assert application.ask(redirect_uri=own).status_code == 400
        ticket = ticket_in(application.ask())
        form = {"ticket": ticket, "decision": "deny"}
        with httpx.Client(base_url=hub.url, trust_env=False) as http:
            elsewhere = http.post("/oauth/authorize", data=form, headers=own_headers(http))
        assert elsewhere.status_code == 400
        assert "Location" not in elsewhere.headers


@pytest.mark.parametrize("host", ["a;b", "a b", "a'b", "a@b", ""])
def test_invalid_hosts_are_not_redirected_to(host: str) -> None:
    # It would stand in the page's policy, and some servers let it through.
    assert not RegisteredClient("c").may_redirect_to(f"http://{host}/web/callback", f"http://{host}")
    assert RegisteredClient("c").may_redirect_to("http://a.b/web/callback", "http://a.b")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"response_type": None}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code id_token"}, "unsupported_response_type"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_mode": "form_post"}, "invalid_request"),
        ({"scope": None}, "invalid_scope"),
        ({"scope": "openid admin"}, "invalid_scope"),
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": "x" * 42}, "invalid_request"),
        ({"code_challenge": "x" * 128}, "invalid_request"),
        ({"code_challenge": "+" * 43}, "invalid_request"),
        ({"nonce": "n" * 501}, "invalid_request"),
        ({"nonce": "\u00fc"}, "invalid_request"),
        ({"prompt": "none"}, "login_required"),
        ({"prompt": "none login"}, "invalid_request"),
        ({"prompt": "perhaps"}, "invalid_request"),
        ({"request": "x.y.z"}, "request_not_supported"),
        ({"request_uri": "https://evil.test/"}, "request_uri_not_supported"),
    ],
)
def test_errors_return_to_the_application(
    application: Application, changes: dict[str, str | None], error: str
) -> None:
    answer = application.ask(**changes)
    assert answer.status_code == 303, answer.text
    address, _, query = answer.headers["Location"].partition("?")
    assert address == application.redirect_uri
    came = parse_qs(query)
    assert came["error"] == [error]
    assert came["error_description"]
    assert came["state"] == [application.query["state"]]
    assert "code" not in came


@pytest.mark.parametrize("prompt", ["login", "consent", "select_account login"])
def test_supported_prompts_show_the_page(application: Application, prompt: str) -> None:
    assert application.ask(prompt=prompt).status_code == 200


@pytest.mark.parametrize("state", ["s" * 2001, "\u00fc", "a\nb"])
def test_an_invalid_state_is_not_returned(application: Application, state: str) -> None:
    came = parse_qs(urlsplit(application.ask(state=state).headers["Location"]).query)
    assert came["error"] == ["invalid_request"]
    assert "state" not in came


# -- refused after the answer --------------------------------------------------------------------------------


def test_a_wrong_token_is_reported_on_the_page(hub: HubServer, application: Application) -> None:
    given = application.tokens(hub.token("lise"))
    for wrong in ("unknown", given["access_token"]):
        again = application.answer(application.ask(), wrong)
        assert again.status_code == 401
        assert "Location" not in again.headers
        assert "This is not a token of an account here." in again.text
        assert wrong not in again.text
        right = application.answer(again, f"  {hub.token('lise')}\n")
        assert right.status_code == 303


def test_invalid_tokens_are_rate_limited(hub: HubServer, token: str) -> None:
    transport = httpx.HTTPTransport(local_address="127.0.0.77")
    with httpx.Client(base_url=hub.url, transport=transport, timeout=30) as other_machine:
        application = Application(hub.url, client=other_machine)
        page = application.ask()
        answers = [application.answer(page, "unknown").status_code for _ in range(OF_ONE + 1)]
        assert answers == [401] * OF_ONE + [429]
        late = application.answer(page, token)
        assert late.status_code == 429
        assert late.headers["Retry-After"] == str(WINDOW_SECONDS)
    with Application(hub.url).http as this_machine:
        assert Application(hub.url, client=this_machine).code(token)


def test_the_rate_limit_expires() -> None:
    time = 0.0
    attempts = Attempts(lambda: time)
    for number in range(OF_ALL):
        assert not attempts.are_too_many("someone")
        attempts.count(str(number))
    attempts.count("someone")
    assert attempts.are_too_many("someone"), "all together"
    time = WINDOW_SECONDS + 1.0
    assert not attempts.are_too_many("someone")


def test_attempts_of_others_lock_no_address_out() -> None:
    attempts = Attempts()
    for address in range(31):
        for _ in range(OF_ONE):
            attempts.count(f"10.0.0.{address}")
    assert attempts.are_too_many("10.0.0.1")
    assert not attempts.are_too_many("10.0.0.99")


REQUEST: Final = AuthorizationRequest("c", "http://x/", frozenset({"openid"}), "x" * 43, "s", None)


def test_forged_and_expired_tickets_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    key = b"k" * 32
    ticket = seal(key, REQUEST)
    assert unseal(key, ticket) == REQUEST
    head, claims, signature = ticket.split(".")
    none = base64.urlsafe_b64encode(b'{"alg":"none"}').rstrip(b"=").decode()
    other_release = sign(key, {"client_id": "c", "scope": "openid"}, 60)
    forged = ("", "x", f"{none}.{claims}.", f"{head}.{claims[:-4]}AAAA.{signature}", "\ud800", ticket[:-9])
    for bad in (*forged, other_release):
        with pytest.raises(HubFailure):
            unseal(key, bad)
    with pytest.raises(HubFailure):
        unseal(b"l" * 32, ticket)
    monkeypatch.setattr("collidium_plugins.local_hub.openid.requests.VALID_SECONDS", -1)
    old = seal(key, REQUEST)
    with pytest.raises(HubFailure):
        unseal(key, old)


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (b"", "application/x-www-form-urlencoded"),
        (b"ticket=x&token=y&decision=allow", "application/x-www-form-urlencoded"),
        (b"ticket=x&ticket=y", "application/x-www-form-urlencoded"),
        (b"{}", "application/json"),
        (b"x" * 40_000, "application/x-www-form-urlencoded"),
        (b"\xff=%ff", "application/x-www-form-urlencoded"),
    ],
)
def test_invalid_consent_forms_are_rejected(
    application: Application, content: bytes, media_type: str
) -> None:
    headers = {"Content-Type": media_type, **own_headers(application.http)}
    answer = application.http.post("/oauth/authorize", content=content, headers=headers)
    assert answer.status_code in {400, 413}
    assert "This sign-in cannot continue" in answer.text


# -- codes and tokens ----------------------------------------------------------------------------------------


def refused(answer: httpx.Response, error: str, status: int = 400) -> None:
    assert answer.status_code == status, answer.text
    assert answer.json()["error"] == error
    assert answer.json()["error_description"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert "access_token" not in answer.text


@pytest.mark.parametrize(
    ("changes", "error", "status"),
    [
        ({"grant_type": ""}, "invalid_request", 400),
        ({"grant_type": "password"}, "unsupported_grant_type", 400),
        ({"grant_type": "client_credentials"}, "unsupported_grant_type", 400),
        ({"code": ""}, "invalid_request", 400),
        ({"code": "x" * 43}, "invalid_grant", 400),
        ({"code": "\u00fc"}, "invalid_grant", 400),
        ({"redirect_uri": ""}, "invalid_request", 400),
        ({"redirect_uri": ELSEWHERE}, "invalid_grant", 400),
        ({"code_verifier": ""}, "invalid_request", 400),
        ({"code_verifier": "v" * 42}, "invalid_request", 400),
        ({"code_verifier": "v" * 129}, "invalid_request", 400),
        ({"code_verifier": "v" * 43}, "invalid_grant", 400),
        ({"client_id": ""}, "invalid_request", 400),
        ({"client_id": "someone"}, "invalid_client", 401),
        ({"client_secret": "guess"}, "invalid_client", 401),
    ],
)
def test_invalid_token_requests_are_rejected(
    application: Application, token: str, changes: dict[str, str], error: str, status: int
) -> None:
    code = application.code(token)
    answer = application.exchange(code, **changes)
    refused(answer, error, status)
    assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    if error == "invalid_grant" and "code" not in changes:
        refused(application.exchange(code), error)  # a wrong attempt revokes the code


def test_a_challenge_is_no_verifier(application: Application, token: str) -> None:
    challenge = application.query["code_challenge"]
    refused(application.exchange(application.code(token), code_verifier=challenge), "invalid_grant")


def test_second_use_of_a_code_revokes_its_tokens(application: Application, token: str) -> None:
    code = application.code(token)
    given = application.exchange(code).json()
    assert application.status(given["access_token"]) == 200
    refused(application.exchange(code), "invalid_grant")
    assert application.status(given["access_token"]) == 401
    refused(application.refresh(given["refresh_token"]), "invalid_grant")


def test_concurrent_exchanges_of_a_code_give_tokens_once(application: Application, token: str) -> None:
    code = application.code(token)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(application.exchange, [code] * 8))
    given = [answer.json()["access_token"] for answer in answers if answer.status_code == 200]
    assert len(given) == 1
    assert application.status(given[0]) == 401


def test_access_tokens_expire_and_refresh_tokens_rotate(
    hub: HubServer, application: Application, token: str
) -> None:
    first = application.tokens(token)
    changed(
        hub,
        "UPDATE tokens SET expires_at = ? WHERE sha256 = ?",
        store.later(-1),
        digest(first["access_token"]),
    )
    assert application.status(first["access_token"]) == 401
    second = application.refresh(first["refresh_token"], scope="openid").json()
    assert application.status(second["access_token"]) == 200
    assert second["scope"] == EVERYTHING
    assert second["refresh_token"] != first["refresh_token"]
    third = application.refresh(second["refresh_token"]).json()
    # The first one is a stolen copy: it ends what the honest one has.
    refused(application.refresh(first["refresh_token"]), "invalid_grant")
    assert application.status(third["access_token"]) == 401
    refused(application.refresh(third["refresh_token"]), "invalid_grant")


def test_codes_and_refresh_tokens_expire(hub: HubServer, application: Application, token: str) -> None:
    code, refresh = application.code(token), application.tokens(token)["refresh_token"]
    for secret, redeem in ((code, application.exchange), (refresh, application.refresh)):
        past = store.later(-1), digest(secret)
        changed(hub, "UPDATE single_use_tokens SET expires_at = ? WHERE sha256 = ?", *past)
        refused(redeem(secret), "invalid_grant")


def test_kinds_of_tokens_are_not_interchangeable(application: Application, token: str) -> None:
    refused(application.refresh(application.code(token)), "invalid_grant")
    refused(application.exchange(application.tokens(token)["refresh_token"]), "invalid_grant")
    refused(application.refresh(application.tokens(token)["access_token"]), "invalid_grant")
    assert application.status(application.tokens(token)["refresh_token"]) == 401


def test_expired_grants_are_deleted(hub: HubServer, application: Application, token: str) -> None:
    given = application.tokens(token)
    past = store.later(-1)
    changed(
        hub,
        "UPDATE grants SET expires_at = ? WHERE id = (SELECT grant_id FROM tokens WHERE sha256 = ?)",
        past,
        digest(given["access_token"]),
    )
    application.code(token)
    with closing(sqlite3.connect(hub.directory / "hub.sqlite3")) as db:
        (kept,) = db.execute(
            "SELECT (SELECT count(*) FROM tokens WHERE sha256 = ?) + "
            "(SELECT count(*) FROM single_use_tokens WHERE sha256 = ?)",
            (digest(given["access_token"]), digest(given["refresh_token"])),
        ).fetchone()
    assert kept == 0


def test_secrets_are_stored_as_hashes(own_hub: HubServer) -> None:
    with Application(own_hub.url).http as http:
        application = Application(own_hub.url, client=http)
        code = application.code(own_hub.token("ada"))
        given = application.exchange(code).json()
    own_hub.end()
    assert own_hub.directory.stat().st_mode & 0o077 == 0
    kept = b"".join(path.read_bytes() for path in own_hub.directory.glob("hub.sqlite3*"))
    for secret in (code, given["access_token"], given["refresh_token"], own_hub.token("ada")):
        assert secret.encode() not in kept
        assert digest(secret).encode() in kept


@pytest.mark.parametrize(
    ("content", "media_type"),
    [(b"{}", "application/json"), (b"grant_type=x&grant_type=y", "application/x-www-form-urlencoded")],
)
def test_invalid_bodies_of_token_requests_are_rejected(
    application: Application, content: bytes, media_type: str
) -> None:
    answer = application.http.post("/oauth/token", content=content, headers={"Content-Type": media_type})
    refused(answer, "invalid_request")


@pytest.mark.parametrize(
    "header", ["Basic", "Basic !", "Basic " + base64.b64encode(b"\xff:x").decode(), "Bearer x", "Basic eA=="]
)
def test_invalid_client_credentials_are_rejected(application: Application, token: str, header: str) -> None:
    form = {"grant_type": "authorization_code", "code": application.code(token)}
    answer = application.http.post("/oauth/token", data=form, headers={"Authorization": header})
    refused(answer, "invalid_client", 401)


# -- what a token may do -------------------------------------------------------------------------------------


def api(hub: HubServer, scope: str, token: str) -> HfApi:
    with Application(hub.url).http as http:
        given = Application(hub.url, scope, client=http).tokens(token)
    assert ("id_token" in given) == ("openid" in scope.split())
    return HfApi(endpoint=hub.url, token=given["access_token"])


def test_huggingface_hub_works_with_an_access_token(hub: HubServer, token: str) -> None:
    client = api(hub, EVERYTHING, token)
    who = client.whoami()
    assert who["name"] == "lise"
    assert who["auth"]["accessToken"]["role"] == "write"
    repo = client.create_repo("lise/by-sign-in", repo_type="dataset", private=True).repo_id
    client.upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id=repo, repo_type="dataset")
    assert client.list_repo_files(repo, repo_type="dataset") == ["x"]
    client.delete_repo(repo, repo_type="dataset")


def test_sign_in_scope_reads_and_changes_nothing_private(hub: HubServer, token: str) -> None:
    owner = hub.api("lise")
    public = owner.create_repo("lise/public").repo_id
    private = owner.create_repo("lise/private", private=True).repo_id
    client = api(hub, "openid profile", token)
    assert client.whoami()["auth"]["accessToken"]["role"] == "read"
    for refused_call in (
        lambda: client.create_repo("lise/new"),
        lambda: client.create_branch(public, branch="b"),
        lambda: client.upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id=public),
        lambda: client.delete_repo(public),
    ):
        with pytest.raises(HfHubHTTPError) as error:
            refused_call()
        assert error.value.response.status_code == 403
        assert "repos" in str(error.value)
    assert client.model_info(public).id == public
    with pytest.raises(RepositoryNotFoundError):
        client.model_info(private)
    assert private not in {model.id for model in client.list_models(author="lise")}


def test_each_scope_permits_its_calls(hub: HubServer, token: str) -> None:
    owner = hub.api("lise")
    repo = owner.create_repo("lise/scopes", private=True).repo_id
    reader = api(hub, "read-repos", token)
    assert reader.model_info(repo).private
    assert repo in {model.id for model in reader.list_models(author="lise")}
    writer = api(hub, "write-repos", token)
    assert writer.whoami()["auth"]["accessToken"]["role"] == "fineGrained"
    writer.upload_file(path_or_fileobj=b"x", path_in_repo="x", repo_id=repo)
    for client in (reader, writer):
        with pytest.raises(HfHubHTTPError, match="manage-repos"):
            client.create_repo("lise/new")
        with pytest.raises(HfHubHTTPError, match="manage-repos"):
            client.delete_repo(repo)
    with pytest.raises(HfHubHTTPError, match="write-repos"):
        reader.upload_file(path_or_fileobj=b"y", path_in_repo="y", repo_id=repo)
    api(hub, "manage-repos", token).delete_repo(repo)


def test_userinfo_needs_a_token_with_openid(application: Application, hub: HubServer, token: str) -> None:
    anonymous = application.http.get("/oauth/userinfo")
    assert anonymous.status_code == 401
    assert anonymous.headers["WWW-Authenticate"].startswith("Bearer")
    with_openid = {"Authorization": f"Bearer {api(hub, 'openid', token).token}"}
    assert "name" not in application.http.get("/oauth/userinfo", headers=with_openid).json()
    without = {"Authorization": f"Bearer {api(hub, 'read-repos', token).token}"}
    answer = application.http.get("/oauth/userinfo", headers=without)
    assert answer.status_code == 403
    assert "insufficient_scope" in answer.headers["WWW-Authenticate"]


def test_a_new_token_revokes_all_sign_ins(own_hub: HubServer) -> None:
    from collidium_plugins.local_hub import accounts
    from collidium_plugins.local_hub.store import Store

    with Application(own_hub.url).http as http:
        application = Application(own_hub.url, client=http)
        given = application.tokens(own_hub.token("ada"))
        with closing(Store(own_hub.directory)) as store, store.database.writing() as db:
            account = accounts.find(db, "ada")
            assert account is not None
            accounts.make_token(db, account)
        assert application.status(given["access_token"]) == 401
        refused(application.refresh(given["refresh_token"]), "invalid_grant")


# -- anything at all -----------------------------------------------------------------------------------------

NAMES = st.sampled_from(
    ["client_id", "redirect_uri", "response_type", "scope", "state", "nonce", "prompt", "code_challenge",
     "code_challenge_method", "response_mode", "ticket", "token", "decision", "grant_type", "code",
     "code_verifier", "refresh_token", "client_secret"]
)  # fmt: skip
VALUES = st.text(max_size=60) | st.sampled_from(
    ["collidium-web", ELSEWHERE, "code", "openid", "S256", "x" * 43, "none", "allow", "authorization_code"]
)


@settings(max_examples=60 if LONG else 15)
@given(sent=st.lists(st.tuples(NAMES, VALUES), max_size=12))
def test_no_input_causes_a_server_error(application: Application, sent: list[tuple[str, str]]) -> None:
    encoded = urlencode(sent, errors="surrogatepass").encode()
    form = {"Content-Type": "application/x-www-form-urlencoded", **own_headers(application.http)}
    answers = [
        application.http.get(f"/oauth/authorize?{encoded.decode()}"),
        application.http.post("/oauth/authorize", content=encoded, headers=form),
        application.http.post("/oauth/token", content=encoded, headers=form),
    ]
    assert all(answer.status_code < 500 for answer in answers), sent
    for answer in answers:
        location = answer.headers.get("Location")
        assert location is None or location.startswith(f"{ELSEWHERE}?error=")


# -- settings ------------------------------------------------------------------------------------------------

SECRET: Final = "top secret+/%"


def test_a_server_with_a_secret_and_a_public_address(tmp_path: Path) -> None:
    env = {
        "PLATFORM_OAUTH_CLIENT_ID": "pages",
        "PLATFORM_OAUTH_CLIENT_SECRET": SECRET,
        "PLATFORM_PUBLIC_URL": "https://collidium.test",
        "PLATFORM_OAUTH_REDIRECT_URIS": ELSEWHERE,
    }
    with ServerProcess(tmp_path, env=env) as server:
        token, hub_url = server.add_user("ada"), f"{server.base_url}/hub"
        with httpx.Client(base_url=hub_url, timeout=30, trust_env=False) as http:
            document = http.get("/.well-known/openid-configuration").json()
            assert document["issuer"] == hub_url
            assert "client_secret_basic" in document["token_endpoint_auth_methods_supported"]
            application = Application(hub_url, client=http)
            application.query["client_id"] = "pages"
            assert application.ask(redirect_uri=ELSEWHERE).status_code == 200
            public = "https://collidium.test/web/callback"
            application.redirect_uri = application.query["redirect_uri"] = public
            assert (
                "form-action 'self' https://collidium.test;"
                in (application.ask().headers["Content-Security-Policy"])
            )
            for given in ({}, {"client_secret": "x"}):
                answer = application.exchange(application.code(token), client_id="pages", **given)
                refused(answer, "invalid_client", 401)
            body = application.exchange(application.code(token), client_id="pages", client_secret=SECRET)
            assert body.status_code == 200
            form = {
                "grant_type": "authorization_code",
                "code": application.code(token),
                "redirect_uri": public,
                "code_verifier": application.verifier,
            }
            # Names and secrets are encoded before they are joined (RFC 6749, section 2.3.1).
            auth = ("pages", urlencode({"": SECRET})[1:])
            both = http.post("/oauth/token", data=form | {"client_secret": SECRET}, auth=auth)
            refused(both, "invalid_request")
            other = http.post("/oauth/token", data=form | {"client_id": "x"}, auth=auth)
            refused(other, "invalid_request")
            header = http.post("/oauth/token", data=form, auth=auth)
            assert header.status_code == 200, header.text
            me = http.get(
                f"{server.base_url}/v1/me",
                headers={"Authorization": f"Bearer {header.json()['access_token']}"},
            )
            assert me.json()["hub_username"] == "ada"


@pytest.mark.parametrize(
    "address", ["pages.test/web/callback", "https://a b/web/callback", "https://x/#y", "https://x/y?z", "*"]
)
def test_invalid_redirect_uris_are_configuration_errors(address: str) -> None:
    with pytest.raises(ConfigurationError, match="PLATFORM_OAUTH_REDIRECT_URIS"):
        client_of(Settings(oauth_redirect_uris=(address,)))


# -- files of earlier releases -------------------------------------------------------------------------------


def test_the_first_schema_version_is_migrated(tmp_path: Path) -> None:
    path = tmp_path / "hub.sqlite3"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(store.VERSIONS[0].read_text())
        db.execute("INSERT INTO accounts VALUES (1, 'ada', '2026-01-01T00:00:00.000Z')")
        db.execute(
            "INSERT INTO tokens VALUES (?, 1, 'user add', '2026-01-01T00:00:00.000Z', NULL)",
            (digest("hub_old"),),
        )
        db.execute("PRAGMA user_version = 1")
        db.commit()
    from collidium_plugins.local_hub import accounts

    for _ in range(2):
        with closing(store.Database(path)) as opened, opened.reading() as db:
            caller = accounts.owner_of(db, "hub_old")
            assert caller is not None
            assert caller.name == "ada"
            assert caller.may("manage-repos")
            assert db.execute("PRAGMA user_version").fetchone()[0] == store.SCHEMA_VERSION
            assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(RuntimeError, match="version 99"):
        store.Database(path)
