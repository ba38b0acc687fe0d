"""Sign-in through a TLS proxy that forwards the browser's address."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx

from collidium.testing.server import ServerProcess

PUBLIC = "https://collidium.example.org"


WEB_ENVIRONMENT = {
    "PLATFORM_PUBLIC_URL": PUBLIC,
    "PLATFORM_TRUSTED_PROXIES": "1",
    "PLATFORM_SIGN_INS_PER_MINUTE": "3",
}


def leave(web: ServerProcess, came_from: str) -> httpx.Response:
    """Begin a sign-in as the proxy passes it on."""
    headers = {"Host": "internal:8000", "X-Forwarded-For": came_from}
    return httpx.get(f"{web.base_url}/web/sign-in", headers=headers, trust_env=False)


def test_cookies_and_addresses_are_those_of_tls(web: ServerProcess) -> None:
    answer = leave(web, "192.0.2.1")
    assert answer.status_code == 303
    address = urlsplit(answer.headers["Location"])
    assert f"{address.scheme}://{address.netloc}{address.path}" == f"{PUBLIC}/hub/oauth/authorize"
    assert parse_qs(address.query)["redirect_uri"] == [f"{PUBLIC}/web/callback"]
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-collidium_sign_in_")
    assert {"Secure", "HttpOnly", "Path=/", "SameSite=Lax"} <= set(cookie.split("; "))
    assert "Domain" not in cookie


def test_each_address_has_its_own_limit(web: ServerProcess) -> None:
    answers = [leave(web, f"198.51.100.{number}, 192.0.2.2") for number in range(40)]
    statuses = [answer.status_code for answer in answers]
    # A new minute may begin among them.
    assert statuses.count(303) in {3, 6}
    assert set(statuses) == {303, 429}
    refused = answers[statuses.index(429)]
    assert 1 <= int(refused.headers["Retry-After"]) <= 61
    assert "wait a little" in refused.text
    assert "set-cookie" not in refused.headers
    assert leave(web, "192.0.2.3").status_code == 303


def test_a_page_knows_the_scheme_from_its_proxy(tmp_path: Path) -> None:
    """Where no public address is set: the host is passed on, the scheme is in a header."""
    with ServerProcess(tmp_path, env={"PLATFORM_TRUSTED_PROXIES": "1"}) as server:
        headers = {"Host": "collidium.example.org", "X-Forwarded-Proto": "https"}
        answer = httpx.get(f"{server.base_url}/web/sign-in", headers=headers, trust_env=False)
    address = parse_qs(urlsplit(answer.headers["Location"]).query)["redirect_uri"]
    assert address == [f"{PUBLIC}/web/callback"]
    assert "Secure" in answer.headers["set-cookie"]
