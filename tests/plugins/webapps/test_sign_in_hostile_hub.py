"""Sign-in with hostile, broken and impersonated hubs: no session, and no secrets for other hosts."""

from __future__ import annotations

import asyncio
import base64
import hmac
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, RSAKey
from tests.stubs import listening
from tests.waiting import until

from collidium.errors import BadRequest, CollidiumError, Unavailable, UpstreamError
from collidium.sessions import BegunSignIn
from collidium_plugins.webapps.sign_in import flow
from collidium_plugins.webapps.sign_in.flow import DISCOVERY, Grant, OAuthClient, OAuthProvider

KEY = RSAKey.generate_key(2048, {"kid": "one", "alg": "RS256", "use": "sig"})
OTHER_KEY = RSAKey.generate_key(2048, {"kid": "two", "alg": "RS256", "use": "sig"})
ELSEWHERE = ECKey.generate_key("P-256", {"kid": "one"})


def signed(claims: dict[str, Any], key: RSAKey, kid: str) -> str:
    return jwt.encode({"alg": "RS256", "kid": kid}, claims, key)


@dataclass
class Scripted:
    """A hub that says whatever a test has it say; honest where it says nothing."""

    url: str
    sign_in: BegunSignIn
    #: What the documents have in addition, by their paths.
    overrides: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: What the id token claims in addition.
    claims: dict[str, Any] = field(default_factory=dict)
    #: Raw answers by path: status and body.
    raw: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    sign: Callable[[dict[str, Any]], str] = lambda claims: jwt.encode(
        {"alg": "RS256", "kid": "one"}, claims, KEY
    )
    asked: list[str] = field(default_factory=list)
    forms: list[dict[str, list[str]]] = field(default_factory=list)
    authorizations: list[str | None] = field(default_factory=list)

    def answer(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        return self.raw.get(path) or (
            200,
            json.dumps(self.document(path) | self.overrides.get(path, {})).encode(),
        )

    def document(self, path: str) -> dict[str, Any]:
        if path == DISCOVERY:
            addresses = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
            return {"issuer": self.url} | {name: f"{self.url}/{end}" for name, end in addresses.items()}
        if path == "/jwks":
            return {"keys": [KEY.as_dict(private=False)]}
        now = int(time.time())
        claims = {
            "iss": self.url,
            "aud": "pages",
            "sub": "1",
            "iat": now,
            "exp": now + 300,
            "nonce": self.sign_in.nonce,
        }
        token = self.sign({name: v for name, v in (claims | self.claims).items() if v is not None})
        return {"access_token": "hub_secret", "token_type": "bearer", "expires_in": 60, "id_token": token}


@pytest.fixture
def hub() -> Iterator[Scripted]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = hub.answer(self.path)
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", body.decode())
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            hub.forms.append(parse_qs(body))
            hub.authorizations.append(self.headers["Authorization"])
            self.do_GET()

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    back = "http://127.0.0.1/web/callback"
    hub = Scripted(f"http://127.0.0.1:{server.server_port}", BegunSignIn("k" * 43, back, "/", ("profile",)))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield hub
    server.shutdown()
    thread.join()
    server.server_close()


async def redeem(hub: Scripted, secret: str | None = None) -> Grant:
    asked = OAuthProvider(hub.url)
    try:
        return await OAuthClient(asked, "pages", secret).redeem(hub.sign_in, "the-code")
    finally:
        await asked.close()


# -- an honest one -----------------------------------------------------------------------------------------


async def test_a_valid_id_token_is_accepted(hub: Scripted) -> None:
    grant = await redeem(hub)
    assert (grant.token, grant.expires_in, grant.scopes) == ("hub_secret", 60.0, ("profile",))
    assert (grant.claims["iss"], grant.claims["sub"]) == (hub.url, "1")
    (form,) = hub.forms
    assert form == {
        "grant_type": ["authorization_code"],
        "code": ["the-code"],
        "redirect_uri": [hub.sign_in.redirect_uri],
        "code_verifier": [hub.sign_in.verifier],
        "client_id": ["pages"],
    }
    assert hub.authorizations == [None]


async def test_an_application_with_a_secret_proves_it(hub: Scripted) -> None:
    await redeem(hub, "known to two")
    (sent,) = hub.authorizations
    assert sent is not None
    assert sent.startswith("Basic ")
    assert "client_secret" not in hub.forms[0]


async def test_a_hub_may_change_its_key(hub: Scripted) -> None:
    asked = OAuthProvider(hub.url)
    client = OAuthClient(asked, "pages", None)
    await client.redeem(hub.sign_in, "first")
    hub.overrides["/jwks"] = {"keys": [OTHER_KEY.as_dict(private=False)]}
    hub.sign = lambda claims: signed(claims, OTHER_KEY, "two")
    asked._keys_since -= 20  # it was asked a while ago
    assert (await client.redeem(hub.sign_in, "second")).token == "hub_secret"
    assert hub.asked.count("/jwks") == 2
    assert hub.asked.count(DISCOVERY) == 1
    await asked.close()


async def test_issuer_may_end_in_a_slash(hub: Scripted) -> None:
    hub.overrides[DISCOVERY] = {"issuer": f"{hub.url}/"}
    asked = OAuthProvider(f"{hub.url}/")
    assert (await asked.endpoints()).issuer == f"{hub.url}/"
    assert hub.asked == [DISCOVERY]
    await asked.close()


# -- id tokens ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "claims",
    [
        {"nonce": "another"},
        {"nonce": None},
        {"iss": "https://elsewhere.example"},
        {"iss": None},
        {"aud": "another"},
        {"aud": ["another"]},
        {"aud": None},
        {"aud": ["pages", "another"], "azp": "another"},
        {"exp": 1},
        {"exp": None},
        {"exp": "soon"},
        {"iat": 10**12},
        {"nbf": 10**12},
        {"sub": None},
        {"at_hash": "another"},
    ],
)
async def test_a_wrong_claim_does_not_sign_in(hub: Scripted, claims: dict[str, Any]) -> None:
    hub.claims = claims
    with pytest.raises(UpstreamError, match="id token"):
        await redeem(hub)


def unsigned(claims: dict[str, Any]) -> str:
    return jwt.encode({"alg": "none"}, claims, OctKey.import_key("x" * 32), algorithms=["none"])


def with_the_public_key(claims: dict[str, Any]) -> str:
    """Signed with what everybody knows, as if it were a secret of two."""
    parts = [json.dumps(part).encode() for part in ({"alg": "HS256", "kid": "one"}, claims)]
    text = ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
    mac = hmac.digest(KEY.as_pem(private=False), text.encode(), "sha256")
    return f"{text}.{base64.urlsafe_b64encode(mac).decode().rstrip('=')}"


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.parametrize(
    "sign",
    [
        unsigned,
        with_the_public_key,
        lambda claims: signed(claims, OTHER_KEY, "two"),
        lambda claims: signed(claims, OTHER_KEY, "one"),
        lambda claims: jwt.encode({"alg": "ES256", "kid": "one"}, claims, ELSEWHERE),
        lambda claims: signed(claims, KEY, "one")[:-8] + "AAAAAAAA",
        lambda claims: "not.a.token",
        lambda claims: "",
        lambda claims: "é",
    ],
)
async def test_a_signature_of_another_key_does_not_sign_in(
    hub: Scripted, sign: Callable[[dict[str, Any]], str]
) -> None:
    hub.sign = sign
    with pytest.raises(UpstreamError, match="id token"):
        await redeem(hub)


# -- what it says of itself --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "overrides",
    [
        {"issuer": "https://elsewhere.example"},
        {"issuer": None},
        {"token_endpoint": "http://elsewhere.example/token"},
        {"token_endpoint": "http://user@127.0.0.1/token"},
        {"jwks_uri": "http://127.0.0.1:1/jwks"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "//elsewhere.example"},
        {"authorization_endpoint": ["https://hub.example"]},
        {"jwks_uri": None},
        {"jwks_uri": "http://[::1"},
    ],
)
async def test_unsafe_endpoints_are_rejected(hub: Scripted, overrides: dict[str, Any]) -> None:
    hub.overrides[DISCOVERY] = overrides
    with pytest.raises(UpstreamError):
        await redeem(hub)
    assert hub.forms == []


@pytest.mark.parametrize(
    ("path", "answer", "error"),
    [
        (DISCOVERY, (200, b"<html>"), UpstreamError),
        (DISCOVERY, (200, b"[]"), UpstreamError),
        (DISCOVERY, (200, b"[" * 100_000), UpstreamError),
        (DISCOVERY, (200, b" " * 300_000), UpstreamError),
        (DISCOVERY, (404, b"{}"), UpstreamError),
        (DISCOVERY, (302, b"http://127.0.0.1:1/"), UpstreamError),
        (DISCOVERY, (503, b"{}"), Unavailable),
        ("/jwks", (200, b"{}"), UpstreamError),
        ("/jwks", (200, b'{"keys": [{"kty": "x"}]}'), UpstreamError),
        ("/jwks", (200, b'{"keys": 3}'), UpstreamError),
        ("/jwks", (500, b""), Unavailable),
        ("/token", (400, b'{"error": "invalid_grant"}'), BadRequest),
        ("/token", (401, b'{"error": "invalid_client"}'), UpstreamError),
        ("/token", (400, b'{"error": {"a": 1}}'), UpstreamError),
        ("/token", (307, b"http://127.0.0.1:1/"), UpstreamError),
        ("/token", (429, b"{}"), Unavailable),
        ("/token", (200, b"{}"), UpstreamError),
        ("/token", (200, b'{"access_token": 3, "token_type": "bearer"}'), UpstreamError),
        ("/token", (200, b'{"access_token": "x", "token_type": "mac"}'), UpstreamError),
        ("/token", (200, b'{"access_token": "x", "token_type": "bearer"}'), UpstreamError),
    ],
)
async def test_an_invalid_answer_is_reported(
    hub: Scripted, path: str, answer: tuple[int, bytes], error: type[CollidiumError]
) -> None:
    hub.raw[path] = answer
    with pytest.raises(error) as raised:
        await redeem(hub)
    assert type(raised.value) is error
    assert "the-code" not in raised.value.detail


async def test_a_hub_that_is_down_is_reported_and_asked_again_later(hub: Scripted) -> None:
    asked = OAuthProvider("http://127.0.0.1:1")
    with pytest.raises(Unavailable, match="cannot be reached"):
        await asked.endpoints()
    await asked.close()
    hub.raw[DISCOVERY] = (502, b"")
    asked = OAuthProvider(hub.url)
    with pytest.raises(Unavailable):
        await asked.endpoints()
    del hub.raw[DISCOVERY]
    assert (await asked.endpoints()).issuer == hub.url
    await asked.close()


@pytest.mark.parametrize("seconds", [None, "60", True, float("inf"), -5, 0])
async def test_invalid_token_lifetimes_are_ignored(hub: Scripted, seconds: object) -> None:
    hub.overrides["/token"] = {"expires_in": seconds}
    grant = await redeem(hub)
    assert grant.expires_in in {None, -5.0, 0.0}


async def test_sign_ins_share_one_call_to_a_silent_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "TIMEOUT_SECONDS", 1.0)
    calls = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal calls
        calls += 1
        await reader.read()
        writer.close()

    async with listening(serve) as url:
        silent = OAuthProvider(url)
        visits = [asyncio.create_task(silent.endpoints()) for _ in range(20)]
        await until(lambda: any(visit.done() for visit in visits))
        outcomes = await asyncio.wait_for(asyncio.gather(*visits, return_exceptions=True), 1)
        assert {type(outcome) for outcome in outcomes} == {Unavailable}
        assert calls <= 1
        await silent.close()
