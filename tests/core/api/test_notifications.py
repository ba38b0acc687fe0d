"""E-mails to participants of a challenge, from the confirmation of an address to unsubscribing."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pyarrow as pa
from tests.mail_server import MailServer, links_in, taking_mail
from tests.waiting import eventually

from collidium.runtime import failpoints
from collidium.testing.plugin import StartServer
from collidium.testing.server import ServerProcess

from .conftest import ok, operating, parquet, refused, signed_in

NAME = "spring-2027"
PATH = "/v1/me/notifications"
DELIVERIES = "/v1/me/webhook/deliveries"
KINDS = ("scored", "disqualified", "deadline", "closed", "results", "job")


def subscribe(anna: httpx.Client, mail: MailServer, address: str) -> None:
    """Give an address and press the button of the page that the link leads to."""
    given = anna.patch(PATH, json={"email": address}).json()
    assert (given["email"], given["confirmed_at"]) == (address, None)
    eventually(lambda: bool(mail.messages))
    (link,) = links_in(mail.messages.pop())
    with httpx.Client(trust_env=False) as browser:
        page = browser.get(link)
        assert (page.status_code, page.headers["Referrer-Policy"]) == (200, "no-referrer")
        assert address in page.text
        assert '<form method="post"><button>Confirm' in page.text
        assert anna.get(PATH).json()["confirmed_at"] is None, "a look at the page changes nothing"
        assert browser.post(link).status_code == 200
        assert browser.get(link[:-9]).status_code == 404
    assert anna.get(PATH).json()["confirmed_at"] is not None


def test_each_thing_that_happens_is_sent_once(start_platform: StartServer, oracle: pa.Table) -> None:
    with taking_mail() as mail:
        server = start_platform(
            {
                "PLATFORM_SMTP_URL": mail.url,
                "PLATFORM_MAIL_FROM": "noreply@collidium.example",
                "PLATFORM_LEASE_SECONDS": "1",
                "PLATFORM_WEBHOOK_TIMEOUT_SECONDS": "5",
            }
        )
        with signed_in(server, "anna") as anna, signed_in(server, "bob") as bob:
            subscribe(anna, mail, "anna@example.org")
            _run(server, anna, bob, mail, parquet(oracle))
            unsubscribe = str(mail.messages[-1]["List-Unsubscribe"]).strip("<>")
            one_click = {"List-Unsubscribe": "One-Click"}
            assert httpx.post(unsubscribe, data=one_click, trust_env=False).status_code == 200
            assert anna.get(PATH).json()["email"] is None
            quota = anna.get(f"/v1/challenges/{NAME}/quota").json()
            assert (quota["submissions_left"], quota["closes_at"] is not None) == (0, True), "it has closed"
        title = "spring-2027"
        # What was on its way when the server was killed comes again, as the same message.
        messages = {str(message["Message-ID"]): message for message in mail.messages}
        assert Counter(str(message["Subject"]).partition(" on ")[0] for message in messages.values()) == {
            f"{title}: your submission was scored": 1,
            f"{title}: your submission was disqualified": 1,
            f"{title} closes": 1,
            f"{title} has closed": 1,
            f"{title} has its final results": 1,
        }
        assert {str(message["To"]) for message in mail.messages} == {"anna@example.org"}
        assert "disqualified: a copy" in mail.messages[1].get_content()


def _run(server: ServerProcess, anna: httpx.Client, bob: httpx.Client, mail: MailServer, file: bytes) -> None:
    """A challenge of two who submit, and of a server that is killed as it ends."""

    def act(method: str, path: str, **body: Any) -> None:
        with operating(server) as operator:
            operator.request(method, f"/admin/challenges{path}", json=body).raise_for_status()

    def closing_in(**span: float) -> str:
        return (datetime.now(UTC) + timedelta(**span)).isoformat()

    act("POST", "", name=NAME, task="tracking", public_percent=50, closes_at=closing_in(days=3))
    submit = f"/v1/challenges/{NAME}/submit"
    sent = ok(anna.post(submit, content=file))
    ok(bob.post(submit, content=file))
    standing = f"/{NAME}/submissions/{sent['submission_id']}"
    eventually(lambda: len(mail.messages) == 1)
    act("POST", f"{standing}/disqualify", reason="a copy")
    eventually(lambda: len(mail.messages) == 2)
    act("PATCH", f"/{NAME}", closes_at=closing_in(hours=20))
    eventually(lambda: len(mail.messages) == 3)
    eventually(lambda: {one["state"] for one in anna.get(DELIVERIES).json()} == {"delivered"})
    # Killed in the transaction that ends it: what that announced was not announced, and is when it ends.
    port = httpx.URL(server.base_url).port or 0
    server.kill()
    server.environment[failpoints.VARIABLE] = "challenge.before_end"
    server.start(port=port)
    with suppress(httpx.TransportError):  # it may be killed before it has answered
        act("POST", f"/{NAME}/close")
    eventually(lambda: server._running().poll() is not None)
    del server.environment[failpoints.VARIABLE]
    server.start(port=port)
    eventually(lambda: len({message["Message-ID"] for message in mail.messages}) == 5)


def test_kinds_are_switched_one_by_one(alice: httpx.Client) -> None:
    everything = {"email": None, "confirmed_at": None, "problem": None, "kinds": dict.fromkeys(KINDS, True)}
    assert alice.get(PATH).json() == everything
    changed = alice.patch(PATH, json={"kinds": {"job": False}})
    assert (changed.status_code, changed.json()["kinds"]["job"]) == (200, False)
    assert alice.patch(PATH, json={}).json() == changed.json()
    assert alice.patch(PATH, json={"kinds": {"job": True}}).json() == everything
    refused(alice.patch(PATH, json={"email": "alice@example.org"}), 409, "sends no e-mail")
    bad = alice.patch(PATH, json={"email": 1, "kinds": {"spam": True, "job": "no"}, "x": 1})
    assert bad.status_code == 422
    assert {problem["field"].partition(".")[0] for problem in bad.json()["errors"]} == {"email", "kinds", "x"}
    assert alice.get(PATH).json() == everything
