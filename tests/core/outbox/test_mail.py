"""Notifications as e-mail: to confirmed addresses, of what is switched on, once, until that is withdrawn."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trustme
from aiosmtpd.smtp import AuthResult
from tests.core.outbox.conftest import Post
from tests.core.outbox.receiver import Receiver
from tests.mail_server import MailServer, links_in, taking_mail
from tests.waiting import until

from collidium import outbox, settings
from collidium.errors import ConfigurationError, Conflict, InvalidInput, NotFound, TooManyRequests
from collidium.outbox import TYPES, recipients
from collidium.outbox.models import Delivery, OutboxEvent, Recipient
from collidium.records import Notifications
from collidium.settings import Settings

ANNA = "anna@example.org"
#: An event of each kind, as receivers are sent it.
RECORDS: dict[Any, dict[str, Any]] = {
    "scored": {
        "submission_id": "s1",
        "challenge": "jets-2027",
        "scores": {"auc": 0.91234567, "rejection": None},
        "credits_earned": 1.5,
        "warnings": [],
    },
    "disqualified": {"submission_id": "s1", "challenge": "jets-2027", "unranked": "disqualified: a copy"},
    **{
        kind: {"name": "jets-2027", "title": "Jets", "closes_at": "2027-06-30T12:00:00Z"}
        for kind in ("deadline", "closed", "results")
    },
    "job": {"request_id": "r1", "state": "failed", "reason": "out of time", "output_hub_repo": None},
}


@pytest.fixture
def mail(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with taking_mail() as mail:
        for name, value in {
            "SMTP_URL": mail.url,
            "MAIL_FROM": "Collidium <noreply@collidium.example>",
            "PUBLIC_URL": "https://collidium.example",
        }.items():
            monkeypatch.setenv(f"PLATFORM_{name}", value)
        yield mail


async def change(account_id: int = 1, **changes: Any) -> Notifications:
    changes = {"kinds": {}, "keep_email": "email" not in changes} | changes
    return await recipients.change(account_id, settings.load(), **changes)


async def subscribe(post: Post, address: str = ANNA, account_id: int = 1) -> None:
    """Give an address and follow the link that comes."""
    await change(account_id, email=address)
    link = recipients.Link("confirm", account_id, address)
    await recipients.follow(link)
    await Delivery.filter(account_id=account_id, state="pending").update(state="given_up")


async def announce(post: Post, *kinds: Any, **record: Any) -> None:
    for kind in kinds:
        await outbox.announce(kind, [1], "about", RECORDS[kind] | record)
    post.clock.moment = datetime.now(UTC)


def text_of(message: EmailMessage) -> str:
    text: str = message.get_content()
    return text.replace("\r\n", "\n")


def token_in(link: str) -> str:
    return parse_qs(urlsplit(link).query)["token"][0]


async def test_a_kind_that_a_newer_release_switched_off_stays_off(post: Post) -> None:
    await change(kinds={"scored": False, "job": False})
    row = await Recipient.get(account_id=1)
    await Recipient.filter(account_id=1).update(off=[*row.off, "of-a-newer-release"])
    await change(kinds={"scored": True, "closed": False})
    assert (await Recipient.get(account_id=1)).off == ["closed", "job", "of-a-newer-release"]


async def test_nothing_but_the_link_is_sent_to_an_unconfirmed_address(post: Post, mail: MailServer) -> None:
    assert (await change(email=ANNA)).confirmed_at is None
    await announce(post, "scored")
    assert await post.deliver() == 1
    (asked,) = mail.messages
    assert (asked["To"], asked["Subject"]) == (ANNA, "Confirm your e-mail address")
    assert asked["List-Unsubscribe"] is None
    (link,) = links_in(asked)
    assert link.startswith("https://collidium.example/mail?token=")
    followed = recipients.link_of(token_in(link), post.secrets)
    await recipients.follow(followed)
    await recipients.follow(followed)
    confirmed = await recipients.find(1)
    assert (confirmed.email, confirmed.confirmed_at is not None) == (ANNA, True)
    assert (await change(email=ANNA)) == confirmed, "it is confirmed already"
    await announce(post, "scored")
    assert await post.deliver() == 1
    # Another address is confirmed anew, and the link to the first one is of no use for it.
    assert (await change(email="anna@elsewhere.example")).confirmed_at is None
    with pytest.raises(Conflict, match="another address"):
        await recipients.follow(followed)


async def test_each_kind_is_sent_once_and_none_that_is_off(post: Post, mail: MailServer) -> None:
    await subscribe(post)
    await announce(post, *TYPES)
    assert await post.deliver() == len(TYPES)
    assert await post.deliver() == 0
    texts = {message["Subject"]: text_of(message) for message in mail.messages}
    assert list(texts) == [
        "jets-2027: your submission was scored",
        "jets-2027: your submission was disqualified",
        "Jets closes on 2027-06-30 at 12:00 UTC",
        "Jets has closed",
        "Jets has its final results",
        "Your simulation request has failed",
    ]
    scored = next(iter(texts.values()))
    assert "auc: 0.912346\ncredits earned: 1.5\nhttps://collidium.example/leaderboard/jets-2027" in scored
    assert "disqualified: a copy" in texts["jets-2027: your submission was disqualified"]
    assert "reason: out of time" in texts["Your simulation request has failed"]
    for message in mail.messages:
        assert (message["To"], message["Auto-Submitted"]) == (ANNA, "auto-generated")
        assert message["From"] == "Collidium <noreply@collidium.example>"
    assert len({message["Message-ID"] for message in mail.messages}) == len(TYPES)

    changed = await change(kinds={"deadline": False, "job": False})
    assert [kind for kind, is_on in changed.kinds.items() if not is_on] == ["deadline", "job"]
    assert (await change(kinds={"job": True})).kinds == dict.fromkeys(TYPES, True) | {"deadline": False}
    await announce(post, "deadline", "job")
    assert await post.deliver() == 1
    assert len(mail.messages) == len(TYPES) + 1


async def test_what_is_off_goes_to_no_webhook_but_that_of_a_request(
    post: Post, mail: MailServer, receiver: Receiver
) -> None:
    await post.register(receiver.url("/registered"))
    await change(kinds={"job": False})
    await announce(post, "job", "scored")
    await outbox.announce("job", [1], "r2", RECORDS["job"], url=receiver.url("/own"))
    post.clock.forward(seconds=1)
    assert await post.deliver() == 2
    assert sorted(request.path for request in receiver.received) == ["/own", "/registered"]
    assert mail.messages == []


async def test_the_unsubscribe_link_ends_it(post: Post, mail: MailServer) -> None:
    await subscribe(post)
    await announce(post, "results")
    await post.deliver()
    (message,) = mail.messages
    link = str(message["List-Unsubscribe"]).strip("<>")
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert link == links_in(message)[-1], "readers see the same link"
    await announce(post, "closed")
    await recipients.follow(recipients.link_of(token_in(link), post.secrets))
    await announce(post, "scored")
    assert await post.deliver() == 0
    assert (await recipients.find(1)).email is None
    assert [(d.state, d.last_error) for d in await post.log()][-1] == ("given_up", "unsubscribed")
    # It is of no use against an address that was given later.
    await subscribe(post, "other@example.org")
    await recipients.follow(recipients.link_of(token_in(link), post.secrets))
    assert (await recipients.find(1)).email == "other@example.org"


@pytest.mark.parametrize("token", ["", "x", "gAAAAA==", "a" * 3000, "\udcff", "ä"])
async def test_a_link_that_was_not_sent_does_nothing(post: Post, token: str) -> None:
    with pytest.raises(NotFound):
        recipients.link_of(token, post.secrets)
    other = post.secrets.encrypt("whsec_something else that is kept encrypted")
    with pytest.raises(NotFound):
        recipients.link_of(other, post.secrets)


async def test_a_link_to_confirm_is_valid_for_three_days(post: Post) -> None:
    link = recipients.Link("confirm", 1, ANNA)
    before = datetime.now(UTC) - recipients.CONFIRMABLE
    recipients.link_of(recipients.token_for(link, post.secrets, before + timedelta(minutes=1)), post.secrets)
    with pytest.raises(Conflict, match="not valid any more"):
        recipients.link_of(
            recipients.token_for(link, post.secrets, before - timedelta(minutes=1)), post.secrets
        )


async def test_an_address_that_rejects_mail_is_given_up(post: Post, mail: MailServer) -> None:
    await subscribe(post)
    mail.answer = lambda _: "550 5.1.1 no such user"
    for number in range(1, recipients.MAX_REJECTIONS + 1):
        await announce(post, "scored")
        assert await post.deliver() == 1, number
    post.clock.forward(hours=20)
    await announce(post, "scored")
    assert await post.deliver() == 0, "neither again nor anything new"
    found = await recipients.find(1)
    assert (found.email, found.confirmed_at) == (ANNA, None)
    assert found.problem is not None
    assert {delivery.state for delivery in await post.log()} == {"given_up"}
    mail.answer = lambda _: "250 OK"
    assert (await change(email=ANNA)).problem is None
    post.clock.moment = datetime.now(UTC)
    assert await post.deliver() == 1
    assert mail.subjects == ["Confirm your e-mail address"]


@pytest.mark.parametrize(
    ("answer", "is_about_address"),
    [
        ("550 no such user", True),
        ("550 5.7.1 relaying denied", False),
        ("554 no", False),
    ],
)
async def test_failures_of_a_relay_switch_no_address_off(
    post: Post, mail: MailServer, answer: str, is_about_address: bool
) -> None:
    await subscribe(post)
    mail.answer = lambda _: answer
    for _ in range(recipients.MAX_REJECTIONS):
        await announce(post, "scored")
        await post.deliver()
        post.clock.forward(hours=2)
    assert ((await recipients.find(1)).problem is not None) is is_about_address
    assert (await post.log())[-1].state == ("given_up" if is_about_address else "pending")


async def test_what_the_mail_server_does_not_take_now_is_sent_again(
    post: Post, mail: MailServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A temporary rejection, then a server that cannot be used: no password is ever logged."""
    caplog.set_level(logging.DEBUG)
    await subscribe(post)
    mail.answer = lambda _: "451 greylisted"
    await announce(post, "scored")
    assert await post.deliver() == 1
    assert await post.deliver() == 0
    monkeypatch.setenv("PLATFORM_SMTP_URL", f"smtp://collidium:s3cr%40t@127.0.0.1:{mail.port}")
    await announce(post, "closed", "results")
    post.clock.forward(minutes=1)
    assert await post.deliver() == 3, "it is no failure of the account's, so that none waits for another"
    assert [(d.state, d.attempts, d.last_error) for d in (await post.log())[-3:]] == [
        ("pending", attempts, "the mail server could not be used") for attempts in (2, 1, 1)
    ]
    assert "s3cr" not in caplog.text
    monkeypatch.setenv("PLATFORM_SMTP_URL", mail.url)
    mail.answer = lambda _: "250 OK"
    post.clock.forward(minutes=1)
    assert await post.deliver() == 3
    assert len(mail.messages) == 3
    post.clock.forward(days=2)
    assert await post.deliver() == 0


async def test_a_password_is_sent_over_tls_alone(
    post: Post, authority: trustme.CA, trusted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLATFORM_MAIL_FROM", "noreply@collidium.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    seen = []

    def check(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
        seen.append((session.ssl is not None, data.login, data.password))
        return AuthResult(success=True)

    options = {"authenticator": check, "auth_require_tls": False}
    with taking_mail(**options) as bare, taking_mail(tls_context=context, **options) as secure:
        for number, mail in enumerate((bare, secure)):
            monkeypatch.setenv("PLATFORM_SMTP_URL", mail.url.replace("//", "//collidium:s3cr%40t@"))
            await subscribe(post, account_id=number)
            await outbox.announce("results", [number], "jets-2027", RECORDS["results"])
            post.clock.moment = datetime.now(UTC)
            assert await post.deliver() == 1
    assert seen == [(True, b"collidium", b"s3cr@t")]
    assert [len(mail.messages) for mail in (bare, secure)] == [0, 1]


async def test_what_was_taken_is_sent_however_the_connection_ends(post: Post, mail: MailServer) -> None:
    await subscribe(post)
    mail.ends = False
    await announce(post, "scored")
    assert await post.deliver(webhook_timeout_seconds=2) == 1
    assert [delivery.state for delivery in await post.log()][-1] == "delivered"


async def test_text_of_users_makes_no_headers(post: Post, mail: MailServer) -> None:
    for hostile in (
        "anna@example.org\r\nBcc: bob@example.org",
        "anna@example.org, bob@example.org",
        "<anna@example.org>",
        "anna@example",
        f"{'a' * 250}@example.org",
        '"a b"@example.org',
        "=?utf-8?q?a=40elsewhere.example=2c?=@example.org",
    ):
        with pytest.raises(InvalidInput, match="email"):
            await change(email=hostile)
    await subscribe(post)
    title = "Jets\r\nBcc: bob@example.org\r\n\r\nhello \N{SNOWMAN}"
    await announce(post, "closed", title=title)
    await announce(post, "disqualified", unranked="no\n-- \nhttps://elsewhere.example")
    assert await post.deliver() == 2
    first, second = mail.messages
    assert first["Bcc"] is None
    assert first["Subject"] == "Jets Bcc: bob@example.org hello \N{SNOWMAN} has closed"
    assert "\nno --  https://elsewhere.example\n" in text_of(second)


async def test_few_links_are_sent_in_a_day(post: Post, mail: MailServer) -> None:
    """Else an account could fill the mailboxes of others."""
    for number in range(recipients.CONFIRMATIONS_A_DAY):
        await change(email=f"someone{number}@example.org")
    with pytest.raises(TooManyRequests):
        await change(email="one-more@example.org")
    post.clock.forward(seconds=1)
    assert await post.deliver() == 1, "of an address that was changed meanwhile none"
    (asked,) = mail.messages
    assert asked["To"] == f"someone{recipients.CONFIRMATIONS_A_DAY - 1}@example.org"


async def test_an_address_is_sent_few_links_by_all(post: Post, mail: MailServer) -> None:
    sent = 0
    for account_id in (1, 2, 3):
        for tag in ("", "+1", "+2"):
            try:
                await change(account_id, email=f"Victim{tag}@example.org" if tag else "victim@EXAMPLE.org")
                sent += 1
            except TooManyRequests:
                await change(account_id, email=None)
    assert sent == recipients.CONFIRMATIONS_OF_ADDRESS
    await change(3, email="another@example.org")


async def test_a_server_without_mail_takes_no_address(post: Post) -> None:
    with pytest.raises(Conflict, match="sends no e-mail"):
        await change(email=ANNA)
    assert (await change(kinds={"job": False})).kinds["job"] is False


async def test_an_event_of_many_is_forgotten_with_the_last(post: Post, mail: MailServer) -> None:
    """Erasing one account leaves what others are still to be sent."""
    await subscribe(post, account_id=1)
    await subscribe(post, "bob@example.org", account_id=2)
    await outbox.announce("results", [1, 2, 3], "jets-2027", RECORDS["results"])
    await outbox.forget(1)
    assert await Recipient.all().values_list("account_id", flat=True) == [2]
    post.clock.forward(seconds=1)
    assert await post.deliver() == 1
    assert [message["To"] for message in mail.messages] == ["bob@example.org"]
    await outbox.forget(2)
    assert not await OutboxEvent.exists()


async def test_a_killed_process_leaves_its_mail_to_another(
    connected: str, post: Post, mail: MailServer
) -> None:
    """What it was sending is sent again under the same Message-ID, by which readers see it once."""
    await subscribe(post)
    mail.open.clear()
    await announce(post, "results")
    async with post.killed_deliverer(connected):
        await until(lambda: len(mail.messages) == 1)
    mail.open.set()
    assert await post.deliver() == 0  # its lease still holds
    delivery = (await post.log())[-1]
    assert delivery.next_attempt_at is not None
    post.clock.moment = delivery.next_attempt_at
    assert await post.deliver() == 1
    first, second = mail.messages
    assert first["Message-ID"] == second["Message-ID"]
    assert (await post.log())[-1].state == "delivered"


def test_settings_of_mail_are_checked_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for url in ("mail.example.org", "http://s3cret@mail", "smtp://u:s3cret@", "smtp://u:s3cret@host:port"):
        with pytest.raises(ConfigurationError, match=r"PLATFORM_SMTP_URL: .*must have the form") as refused:
            settings.load(smtp_url=url, mail_from="noreply@example.org")
        assert "s3cret" not in str(refused.value)
    for sender in ("Collidium", "a@example.org, b@example.org", "a@example.org\nBcc: c@example.org"):
        with pytest.raises(ConfigurationError, match="PLATFORM_MAIL_FROM"):
            settings.load(smtp_url="smtp://mail.example.org", mail_from=sender)
    with pytest.raises(ConfigurationError, match="needs PLATFORM_MAIL_FROM"):
        settings.load(smtp_url="smtp://mail.example.org")
    chosen: Settings = settings.load(
        smtp_url="smtps://anna%40x:p%2Fw@mail.example.org", mail_from="Ä <a@example.org>"
    )
    server = chosen.mail_server
    assert server is not None
    assert (server.host, server.port, server.tls) == ("mail.example.org", 465, True)
    assert (server.username, server.password) == ("anna@x", "p/w")
    assert "p/w" not in repr(server)
    assert "p%2Fw" not in repr(chosen)
