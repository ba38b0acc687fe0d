"""The page of notification settings."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from collidium.testing.server import ServerProcess

from .visiting import Visitor

PAGE = "/leaderboard/notifications"
#: A mail server that is not there: what is sent waits.
WEB_ENVIRONMENT = {
    "PLATFORM_SMTP_URL": "smtp://127.0.0.1:9",
    "PLATFORM_MAIL_FROM": "noreply@collidium.example",
}


def test_address_and_kinds_are_set_on_the_page(web: ServerProcess, token: Callable[[str], str]) -> None:
    with Visitor(web.base_url) as anna:
        assert anna.get(PAGE).status_code == 401
        anna.sign_in(token("notified"))
        page = anna.get(PAGE).text
        assert f'href="{PAGE}"' in page, "the menu leads to it"
        kinds = anna.get("/v1/me/notifications").json()["kinds"]
        for kind in kinds:
            assert f'value="{kind}" checked' in page
        saved = anna.fill_in(PAGE, email=" anna@example.org ", kind="results")
        assert saved.status_code == 303, saved.text
        known = anna.get("/v1/me/notifications").json()
        assert (known["email"], known["confirmed_at"]) == ("anna@example.org", None)
        assert known["kinds"] == dict.fromkeys(kinds, False) | {"results": True}
        page = anna.get(PAGE).text
        assert "Follow the link that was sent there" in page
        assert ('value="results" checked' in page, 'value="job" checked' in page) == (True, False)
        refused = anna.fill_in(PAGE, email='"><script>')
        assert (refused.status_code, "Nothing was changed" in refused.text) == (422, True)
        assert 'value="&#34;&gt;&lt;script&gt;"' in refused.text
        assert anna.get("/v1/me/notifications").json() == known
        assert anna.fill_in(PAGE, email="").status_code == 303
        assert anna.get("/v1/me/notifications").json()["email"] is None


def test_links_of_other_sites_fill_in_no_address(web: ServerProcess, token: Callable[[str], str]) -> None:
    """Only what was typed here returns, when the session has ended meanwhile."""
    typed = {"email": "mallory@evil.example", "kind": "job"}
    with Visitor(web.base_url) as anna:
        anna.sign_in(token("prefilled"))
        for page in (PAGE, f"{PAGE}?{urlencode(typed)}"):
            shown = anna.get(page).text
            assert "mallory" not in shown
            assert 'value="results" checked' in shown
        form = {**typed, "csrf_token": anna.csrf}
        anna.cookies.clear()
        foreign = anna.post(PAGE, data=form, headers={"Origin": "http://evil.example"})
        assert "mallory" not in anna.sign_in_again(foreign, token("prefilled")).text
        anna.cookies.clear()
        again = anna.sign_in_again(anna.post(PAGE, data=form, headers=anna.own), token("prefilled")).text
        assert 'value="mallory@evil.example"' in again
        assert ('value="job" checked' in again, 'value="results" checked' in again) == (True, False)
        assert "mallory" not in anna.get(f"{PAGE}?{urlencode(typed | {'kind': 'results'})}").text
