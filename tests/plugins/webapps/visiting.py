"""A visitor of the pages by HTTP, with cookies and CSRF tokens, who follows no redirects automatically."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import urljoin, urlsplit

import httpx


class Visitor(httpx.Client):
    """A user's browser: it keeps cookies, and shows what it is given."""

    def __init__(self, address: str) -> None:
        super().__init__(
            base_url=address, timeout=60, trust_env=False, headers={"Accept": "text/html,*/*;q=0.8"}
        )

    @property
    def origin(self) -> str:
        return str(self.base_url).rstrip("/")

    @property
    def own(self) -> dict[str, str]:
        """What a browser says of a form or a script of the page itself."""
        return {"Origin": self.origin, "Sec-Fetch-Site": "same-origin"}

    # -- signing in -----------------------------------------------------------------------------------

    def leave(self, next_page: str = "/", action: str = "") -> str:
        """Begin a sign-in for an action; the hub's address to which it leads."""
        answer = self.get("/web/sign-in", params={"next": next_page, "for": action})
        assert answer.status_code == 303, answer.text
        return answer.headers["Location"]

    def consent(self, address: str, token: str, decision: str = "allow") -> str:
        """Agree at the hub; the address of ours to which it leads back."""
        page = self.get(address)
        assert page.status_code == 200, page.text
        form = {"ticket": field(page.text, "ticket"), "token": token, "decision": decision}
        hub = urlsplit(str(page.url))  # its own page sends the form, wherever it is
        headers = {"Origin": f"{hub.scheme}://{hub.netloc}", "Sec-Fetch-Site": "same-origin"}
        answer = self.post(urljoin(address, action(page.text)), data=form, headers=headers)
        assert answer.status_code == 303, answer.text
        return answer.headers["Location"]

    def sign_in(self, token: str, next_page: str = "/") -> httpx.Response:
        """All of it; the answer that ends it."""
        return self.get(self.consent(self.leave(next_page), token))

    def sign_in_again(self, answer: httpx.Response, token: str) -> httpx.Response:
        """Follow the link of a page that says the session has ended; the page to which it leads back."""
        assert answer.status_code == 401, answer.text
        link = re.search(r'<a class="button primary" href="([^"]*)"', answer.text)
        assert link is not None, answer.text
        away = self.get(unescape(link[1])).headers["Location"]
        return self.get(self.get(self.consent(away, token)).headers["Location"])

    @property
    def is_signed_in(self) -> bool:
        return 'action="/web/sign-out"' in self.get("/web/nothing").text

    # -- forms and scripts of the pages ---------------------------------------------------------------

    @property
    def csrf(self) -> str:
        """The secret that the pages' forms hold."""
        return field(self.get("/").text, "csrf_token")

    def fill_in(self, path: str, **fields: str) -> httpx.Response:
        """Send a form of a page."""
        return self.post(path, data={**fields, "csrf_token": self.csrf}, headers=self.own)

    def call(self, method: str, path: str, **options: object) -> httpx.Response:
        """What a script of a page calls for the account."""
        headers = {**self.own, "X-CSRF-Token": self.csrf, **(options.pop("headers", None) or {})}
        return self.request(method, path, headers=headers, **options)


def field(page: str, name: str) -> str:
    """The value of the first field of that name."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found is not None, page
    return unescape(found[1])


def action(page: str) -> str:
    """Where the first form goes."""
    found = re.search(r'<form[^>]* action="([^"]*)"', page)
    return unescape(found[1]) if found else ""
