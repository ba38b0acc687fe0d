"""Sign-in with the local hub on a running server, and rejected requests."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from quart import Quart

from collidium.testing.server import ServerProcess
from collidium_plugins.webapps.sign_in import forms
from collidium_plugins.webapps.site import PAGES

from .visiting import Visitor

SESSION, SIGN_IN = "collidium_session", "collidium_sign_in"


@pytest.fixture
def visitor(web: ServerProcess) -> Iterator[Visitor]:
    with Visitor(web.base_url) as visitor:
        yield visitor


@pytest.fixture
def other(web: ServerProcess) -> Iterator[Visitor]:
    """Another browser."""
    with Visitor(web.base_url) as visitor:
        yield visitor


@pytest.fixture
def database(web: ServerProcess) -> Path:
    return web.data_dir / "collidium.sqlite3"


def change(database: Path, statement: str) -> None:
    with closing(sqlite3.connect(database, timeout=10)) as db, db:
        assert db.execute(statement).rowcount > 0


def cookie_line(answer: httpx.Response, name: str) -> str:
    """What the answer says of a cookie."""
    return next(line for line in answer.headers.get_list("set-cookie") if line.startswith(name))


def sign_ins(visitor: Visitor) -> dict[str, str]:
    """The cookies of the browser's sign-ins in progress."""
    return {name: key for name, key in visitor.cookies.items() if name.startswith(SIGN_IN)}


# -- what works --------------------------------------------------------------------------------------------


def test_a_user_signs_in_acts_and_signs_out(visitor: Visitor, token: Callable[[str], str]) -> None:
    assert visitor.get("/v1/me").status_code == 401
    answer = visitor.sign_in(token("worth"), "/events?config=ttbar_pu0&event=3")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/events?config=ttbar_pu0&event=3")
    me, page = visitor.get("/v1/me"), visitor.get("/")
    assert me.json()["hub_username"] == "worth"
    assert "worth" in page.text
    assert me.headers["Cache-Control"] == page.headers["Cache-Control"] == "private, no-store"

    answer = visitor.fill_in("/web/sign-out")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/")
    assert SESSION not in visitor.cookies
    assert not visitor.is_signed_in
    assert "worth" not in visitor.get("/").text


def test_the_authorization_request_is_protected(visitor: Visitor) -> None:
    first, second = (parse_qs(urlsplit(visitor.leave()).query) for _ in range(2))
    assert first["response_type"] == ["code"]
    assert first["code_challenge_method"] == ["S256"]
    assert "openid" in first["scope"][0].split()
    for name in ("state", "nonce", "code_challenge"):
        assert len(first[name][0]) == 43
        assert first[name] != second[name]
    secrets = {first[name][0] for name in ("state", "nonce", "code_challenge")} | set(
        sign_ins(visitor).values()
    )
    assert len(secrets) == 5


def test_sign_ins_of_two_tabs_both_end(visitor: Visitor, token: Callable[[str], str]) -> None:
    first, second = visitor.leave("/leaderboard"), visitor.leave("/simulate")
    for address, page in ((second, "/simulate"), (first, "/leaderboard")):
        answer = visitor.get(visitor.consent(address, token("worth")))
        assert (answer.status_code, answer.headers["Location"]) == (303, page)
    assert sign_ins(visitor) == {}


def test_a_browser_begins_five_sign_ins_at_once(visitor: Visitor, token: Callable[[str], str]) -> None:
    addresses = [visitor.leave(f"/events?event={number}") for number in range(8)]
    assert len(sign_ins(visitor)) == 5
    ends = [visitor.get(visitor.consent(address, token("worth"))).status_code for address in addresses]
    assert ends == [400] * 3 + [303] * 5


def scopes(address: str) -> set[str]:
    return set(parse_qs(urlsplit(address).query)["scope"][0].split())


def test_the_hub_is_asked_for_what_the_action_needs(visitor: Visitor, token: Callable[[str], str]) -> None:
    identity = {"openid", "profile"}
    assert scopes(visitor.leave()) == scopes(visitor.leave(action="nonsense")) == identity
    assert scopes(visitor.leave(action="order")) == identity | {"manage-repos"}
    visitor.get(visitor.consent(visitor.leave(action="link"), token("worth")))
    assert scopes(visitor.leave()) == identity | {"read-repos"}, "what was granted before is kept"
    assert scopes(visitor.leave(action="order")) == identity | {"read-repos", "manage-repos"}


def test_cookies_are_http_only_and_same_site(visitor: Visitor, token: Callable[[str], str]) -> None:
    begun = visitor.get("/web/sign-in")
    answer = visitor.get(visitor.consent(begun.headers["Location"], token("worth")))
    for line in (cookie_line(begun, SIGN_IN), cookie_line(answer, SESSION)):
        assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(line.split("; "))
        assert "Domain" not in line


# -- the way back ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "https://elsewhere.example/",
        "//elsewhere.example/",
        "/\\elsewhere.example/",
        "/\t/elsewhere.example/",
        "/\r\nSet-Cookie: a=b",
        "\\\\elsewhere.example",
        "javascript:alert(1)",
        "events",
        "/é",
        "/web/sign-out",
        "/" + "a" * 5000,
    ],
)
def test_external_addresses_are_not_returned_to(target: str) -> None:
    assert forms.local(target) == "/"


def test_a_sign_in_returns_to_our_own_pages(visitor: Visitor, token: Callable[[str], str]) -> None:
    assert visitor.sign_in(token("worth"), "//elsewhere.example/").headers["Location"] == "/"


def test_another_state_is_rejected_and_changes_nothing(visitor: Visitor, token: Callable[[str], str]) -> None:
    back = visitor.consent(visitor.leave(), token("worth"))
    code = parse_qs(urlsplit(back).query)["code"][0]
    for state in ({}, {"state": ""}, {"state": "A" * 43}, {"state": "é"}):
        answer = visitor.get("/web/callback", params={"code": code, **state})
        assert answer.status_code == 400
        assert "did not begin in this browser" in answer.text
    assert visitor.get(back).status_code == 303


def test_a_sign_in_is_not_planted_in_another_browser(
    visitor: Visitor, other: Visitor, token: Callable[[str], str]
) -> None:
    """An attacker's own code in a victim's browser, which did not begin that sign-in (login CSRF)."""
    theirs = other.consent(other.leave(), token("mallory"))
    assert visitor.get(theirs).status_code == 400
    visitor.leave()
    assert visitor.get(theirs).status_code == 400
    # Nor does a state of this browser help: the code was asked for with another browser's challenge.
    state = parse_qs(urlsplit(visitor.leave()).query)["state"][0]
    code = parse_qs(urlsplit(theirs).query)["code"][0]
    assert visitor.get("/web/callback", params={"code": code, "state": state}).status_code == 400
    assert not visitor.is_signed_in


def test_an_invalid_code_is_rejected(visitor: Visitor) -> None:
    state = parse_qs(urlsplit(visitor.leave()).query)["state"][0]
    answer = visitor.get("/web/callback", params={"code": "made-up", "state": state})
    assert answer.status_code == 400
    assert "sign in again" in answer.text
    state = parse_qs(urlsplit(visitor.leave()).query)["state"][0]
    assert visitor.get("/web/callback", params={"state": state}).status_code == 400


def test_denying_access_is_reported(visitor: Visitor) -> None:
    back = visitor.consent(visitor.leave(), "", "deny")
    answer = visitor.get(back)
    assert answer.status_code == 403
    assert "not signed in" in answer.text
    assert not visitor.is_signed_in


def test_errors_of_the_hub_are_escaped(visitor: Visitor) -> None:
    state = parse_qs(urlsplit(visitor.leave()).query)["state"][0]
    said = {"error": "<script>x</script>", "error_description": "<b>" + "long " * 1000}
    answer = visitor.get("/web/callback", params={**said, "state": state})
    assert answer.status_code == 502
    assert "<script>x" not in answer.text
    assert "<b>long" not in answer.text
    assert len(answer.text) < 20_000


# -- sessions ----------------------------------------------------------------------------------------------


def test_a_session_has_a_new_key_and_the_life_of_its_token(
    visitor: Visitor, token: Callable[[str], str]
) -> None:
    planted = "A" * 43
    visitor.cookies.set(SESSION, planted, domain=urlsplit(visitor.origin).hostname or "")
    cookie = cookie_line(visitor.sign_in(token("worth")), SESSION)
    assert planted not in cookie
    seconds = re.search(r"Max-Age=(\d+)", cookie)
    assert seconds is not None
    # The hub's tokens last eight hours, sessions a week.
    assert 0 < int(seconds[1]) <= 8 * 3600


def test_another_sign_in_and_a_sign_out_end_the_session(
    visitor: Visitor, other: Visitor, token: Callable[[str], str]
) -> None:
    visitor.sign_in(token("worth"))
    other.cookies.update(visitor.cookies)
    assert other.is_signed_in
    visitor.sign_in(token("wilma"))
    assert visitor.get("/v1/me").json()["hub_username"] == "wilma"
    assert not other.is_signed_in
    other.cookies.update(visitor.cookies)
    assert other.is_signed_in
    visitor.fill_in("/web/sign-out")
    assert not other.is_signed_in


@pytest.mark.parametrize(
    "ended",
    [
        "UPDATE web_sessions SET ends_at = '2020-01-01 00:00:00+00:00'",
        "UPDATE web_sessions SET seen_at = '2020-01-01 00:00:00+00:00'",
    ],
)
def test_an_old_session_has_ended(
    visitor: Visitor, token: Callable[[str], str], database: Path, ended: str
) -> None:
    visitor.sign_in(token("worth"))
    csrf = visitor.csrf
    change(database, ended)
    headers = {**visitor.own, "X-CSRF-Token": csrf}
    answer = visitor.post("/v1/simulate", headers=headers, json={"preset": "ttbar-quick"})
    assert answer.status_code == 401
    assert "ended; sign in again" in answer.json()["detail"]
    assert not visitor.is_signed_in


def test_a_revoked_token_ends_the_session(
    visitor: Visitor, web: ServerProcess, token: Callable[[str], str], database: Path
) -> None:
    visitor.sign_in(token("revoked"))
    assert visitor.is_signed_in
    change(
        web.data_dir / "hub" / "hub.sqlite3",
        "DELETE FROM tokens WHERE expires_at IS NOT NULL",
    )
    answer = visitor.get("/v1/me")
    assert answer.status_code == 401
    assert "ended; sign in again" in answer.json()["detail"]
    with closing(sqlite3.connect(database)) as db:
        count = "SELECT count(*) FROM web_sessions WHERE hub_username = 'revoked'"
        assert db.execute(count).fetchone() == (0,)


def test_a_banned_user_is_not_signed_in(
    visitor: Visitor, web: ServerProcess, token: Callable[[str], str]
) -> None:
    visitor.sign_in(token("bad"))
    admin = {"X-Admin-Token": web.admin_token}
    sent = {"hub_username": "bad", "banned": True}
    assert visitor.post("/admin/ban", json=sent, headers=admin).status_code == 200
    answer = visitor.get("/v1/me")
    assert answer.status_code == 403
    assert "banned" in answer.json()["detail"]
    answer = visitor.sign_in(token("bad"))
    assert answer.status_code == 403
    assert "banned" in answer.text


# -- forms of ours alone -----------------------------------------------------------------------------------


def test_forms_of_other_sites_and_sessions_are_rejected(
    visitor: Visitor, other: Visitor, token: Callable[[str], str]
) -> None:
    """What is compared is what scripts send, too (``test_api_by_cookie``)."""
    visitor.sign_in(token("worth"))
    other.sign_in(token("worth"))
    own, secret = visitor.own, visitor.csrf
    for headers in ({}, {**own, "Sec-Fetch-Site": "cross-site"}, {"Origin": "https://elsewhere.example"}):
        answer = visitor.post("/web/sign-out", data={"csrf_token": secret}, headers=headers)
        assert answer.status_code == 403
        assert "not sent from a page of ours" in answer.text
    for form in ({}, {"csrf_token": ""}, {"csrf_token": "é"}, {"csrf_token": other.csrf}):
        assert visitor.post("/web/sign-out", data=form, headers=own).status_code == 403
    for path in ("/web/sign-out", "/simulate"):
        answer = visitor.post(path, files={"predictions": b"PAR1"}, headers=own)
        assert answer.status_code == 403, "a form with a file"
    assert visitor.get("/web/sign-out").status_code == 405, "the way out is no link"
    assert visitor.is_signed_in


FORMS = [
    (prefix.rstrip("/") + re.sub("<[^>]*>", "x", rule))
    for prefix, routes in PAGES.items()
    for method, rule, _ in routes
    if method == "POST"
]


@pytest.mark.parametrize("path", FORMS)
def test_every_form_of_the_pages_needs_our_origin(
    visitor: Visitor, token: Callable[[str], str], path: str
) -> None:
    visitor.sign_in(token("worth"))
    csrf = visitor.csrf
    for headers in ({}, {"Origin": "null"}, {"Origin": "http://evil.example"}, {"Referer": "http://x/"}):
        for body in ({"data": {"csrf_token": csrf}}, {"files": {"csrf_token": (None, csrf)}}):
            answer = visitor.post(path, headers=headers, **body)
            assert (answer.status_code, "not sent from a page of ours" in answer.text) == (403, True)
    assert visitor.is_signed_in


async def came_from(referer: str, **form: str) -> str:
    """Where a user goes on whose session ended while they filled in that page's form."""
    sent = {"path": "/simulate/order", "method": "POST", "form": form, "headers": {"Referer": referer}}
    async with Quart("pages").test_request_context(**sent):
        return await forms.page_to_return_to()


async def test_typed_values_survive_a_sign_in() -> None:
    page = "http://localhost/simulate?x=1"
    typed = {"channel": "tt bar", "events": "10", "csrf_token": "secret"}
    assert await came_from(page, **typed) == "/simulate?channel=tt+bar&events=10"
    assert await came_from(page, note="long" * 1000, events="10") == "/simulate?events=10"
    assert await came_from(page, webhook_url="https://x.example/secret", events="10") == "/simulate?events=10"
    assert await came_from("https://elsewhere.example/simulate") == "/"
    assert await came_from("") == "/"


def test_each_typed_field_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: anyone may send a form of 32,000 empty fields."""
    calls = []
    monkeypatch.setattr(forms, "urlencode", lambda items: calls.append(items) or "a=")
    assert len(forms._that_fit([("a", "")] * 32_000, 300)) == 100
    assert len(calls) == 32_000


@pytest.mark.parametrize(
    ("path", "typed", "kept"),
    [
        ("/simulate", {"events": "77", "seed": "4711"}, ['value="77"', 'value="4711"']),
        (
            "/leaderboard/notifications",
            {"email": "new@example.org", "kind": "job"},
            ['value="new@example.org"', 'value="job" checked', 'value="results">'],
        ),
    ],
)
@pytest.mark.parametrize("cause", ["ended", "signed in again"])
def test_a_form_survives_the_end_of_its_session(
    visitor: Visitor,
    token: Callable[[str], str],
    database: Path,
    path: str,
    typed: dict[str, str],
    kept: list[str],
    cause: str,
) -> None:
    visitor.sign_in(token("worth"))
    csrf = visitor.csrf
    if cause == "ended":
        change(database, "UPDATE web_sessions SET ends_at = '2020-01-01 00:00:00+00:00'")
    else:
        visitor.sign_in(token("worth"))
    answer = visitor.post(path, data={**typed, "csrf_token": csrf}, headers=visitor.own)
    link = re.search(r'<a class="button primary" href="([^"]*)"', answer.text)
    assert link is not None, answer.text
    address = unescape(link[1])
    if cause == "ended":
        assert answer.status_code == 401
        address = visitor.get(visitor.consent(visitor.get(address).headers["Location"], token("worth")))
        address = address.headers["Location"]
    else:
        assert answer.status_code == 403
    page = visitor.get(address).text
    assert [value for value in kept if value not in page] == []


# -- secrets -----------------------------------------------------------------------------------------------


def test_secrets_are_not_stored_or_logged(
    visitor: Visitor, web: ServerProcess, token: Callable[[str], str]
) -> None:
    login = token("secretive")
    address = visitor.leave()
    (pending,) = sign_ins(visitor).values()
    back = visitor.consent(address, login)
    code = parse_qs(urlsplit(back).query)["code"][0]
    visitor.get(back)
    key, csrf = visitor.cookies[SESSION], visitor.csrf
    page = visitor.get("/").text
    visitor.get("/v1/me")
    visitor.get("/web/callback", params={"code": code, "state": "x"})
    files = list(web.data_dir.glob("collidium.sqlite3*"))
    kept = b"".join(path.read_bytes() for path in files)
    log = web.log().encode()
    for secret in (pending, code, key, login):
        assert secret not in page
        assert secret.encode() not in kept + log
    assert csrf.encode() not in kept + log
    # A hub token of whatever kind.
    assert not re.search(rb"hub_[A-Za-z0-9_-]{30}", kept + log)
    assert {path.stat().st_mode & 0o077 for path in files} == {0}


@pytest.mark.parametrize("headers", [{}, {"Origin": "null"}, {"Origin": "http://elsewhere.example"}])
def test_another_site_signs_nobody_out(visitor: Visitor, headers: dict[str, str]) -> None:
    """Browsers send its form without the cookie, but would delete the cookie at the response's word."""
    visitor.cookies.clear()
    refused = visitor.post("/web/sign-out", headers=headers)
    assert refused.status_code == 403
    assert "Set-Cookie" not in refused.headers
