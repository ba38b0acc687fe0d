"""Where webhooks may lead: to public addresses, and to those that were checked."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from contextlib import closing
from ipaddress import IPv4Address, ip_address

import pytest
import trustme
from hypothesis import example, given
from hypothesis import strategies as st
from tests.core.outbox.conftest import HOST, Post, resolve_to_loopback
from tests.core.outbox.receiver import Receiver, receiving

from collidium import settings
from collidium.errors import InvalidInput
from collidium.outbox import HTTPS, canonical_url, require_reachable
from collidium.runtime.public_addresses import is_public

PUBLIC = ["8.8.8.8", "93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "2001:4860:4860::8888"]

NOT_PUBLIC = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "100::1",
    "2001::7f00:1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "2606:2800::1%eth0",
    "fec0::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_all_others_are_not(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses())
def test_nothing_that_python_knows_as_private_is_public(address: object) -> None:
    parsed = ip_address(str(address))
    if parsed.is_private or parsed.is_multicast or parsed.is_reserved or parsed.is_link_local:
        assert not is_public(str(parsed))
    if isinstance(parsed, IPv4Address):
        assert not is_public(f"::ffff:{parsed}")


async def resolve_to(*addresses: str) -> Sequence[str]:
    return addresses


async def no_addresses(host: str, port: int, account_id: int | None) -> Sequence[str]:
    raise OSError("no such host")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://receiver.example/", "https://"),
        ("ftp://receiver.example/", "https://"),
        ("receiver.example/hook", "https://"),
        ("", "https://"),
        ("https://", "https://"),
        ("https:///path", "https://"),
        ("https://user@receiver.example/", "user name"),
        ("https://user:password@receiver.example/", "user name"),
        ("https://receiver.example/#part", "fragment"),
        ("https://receiver.example/" + "x" * 2000, "longer"),
        ("https://receiver.example/" + "ä" * 1000, "longer"),
        ("https://receiver.example:port/", "not a URL"),
        ("https://receiver.example:0/", "port"),
        ("https://receiver.example:65536/", "port"),
        ("https://receiver.example:99999/", "port"),
        ("https://receiver.example:-1/", "port"),
        ("https://receiver.example/\x00", "not a URL"),
        ("https://receiver.example/\ud800", "not a URL"),
        ("https://[::1/", "not a URL"),
    ],
)
async def test_an_unusable_url_is_rejected(url: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        await require_reachable(url, settings.load(), resolve=lambda *_: resolve_to("8.8.8.8"))
    assert refused.value.errors[0]["field"] == "webhook_url"
    assert "password" not in str(refused.value).replace("a password", "")


DEFAULTS = settings.load()


@given(st.text() | st.text("https:/.@[]%#?0123456789abcx\\ ", max_size=40).map("https://{}".format))
@example("HTTPS://a.example/@user/a post?x=@#")
async def test_any_text_is_taken_or_refused(url: str) -> None:
    try:
        kept = canonical_url(url)
        await require_reachable(kept, DEFAULTS, resolve=lambda *_: resolve_to("8.8.8.8"))
    except InvalidInput:
        return
    assert kept.startswith("https://")
    assert kept.isascii()
    assert HTTPS.fullmatch(url), "the document has its form"
    assert canonical_url(kept) == kept


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["8.8.8.8", "::1"]])
async def test_a_host_with_any_address_that_is_not_public_is_refused(addresses: list[str]) -> None:
    with pytest.raises(InvalidInput, match="not public") as refused:
        await require_reachable(
            "https://x.example/", settings.load(), resolve=lambda *_: resolve_to(*addresses)
        )
    # An operator's private names are not shown.
    assert not any(address in str(refused.value) for address in addresses)
    allowed = settings.load(webhook_private_addresses=True)
    await require_reachable("https://x.example/", allowed, resolve=lambda *_: resolve_to(*addresses))


async def test_the_canonical_url_does_not_depend_on_its_addresses() -> None:
    """So an order is known again by its URL while no name can be looked up."""
    kept = canonical_url("HTTPS://Does-Not-Exist.invalid:443/a b")
    assert kept == canonical_url(kept) == "https://does-not-exist.invalid/a%20b"
    with pytest.raises(InvalidInput) as refused:
        canonical_url("http://127.0.0.1/", field="url")
    assert refused.value.errors[0]["field"] == "url"
    with pytest.raises(InvalidInput, match="cannot be found"):
        await require_reachable(kept, settings.load(), resolve=no_addresses)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1", "[::1]", "[::ffff:127.0.0.1]"]
)
async def test_loopback_in_any_spelling_is_rejected_by_the_resolver(host: str) -> None:
    with pytest.raises(InvalidInput, match="not public"):
        await require_reachable(f"https://{host}:8443/", settings.load())


# -- at delivery ---------------------------------------------------------------------------------------


async def test_a_rebound_name_is_rejected_at_delivery(post: Post, receiver: Receiver) -> None:
    await require_reachable(receiver.url(), settings.load(), resolve=lambda *_: resolve_to("8.8.8.8"))
    delivery = await post.attempt(receiver.url(), resolve_to_loopback, webhook_private_addresses=False)
    assert receiver.received == []
    assert delivery.last_error == "its host leads to an address that is not public"


async def test_the_connection_goes_to_the_address_that_was_checked(
    post: Post, receiver: Receiver, authority: trustme.CA
) -> None:
    answers = iter([["127.0.0.1"], ["127.0.0.2"]])

    async def changing(host: str, port: int, account_id: int | None) -> Sequence[str]:
        return next(answers)

    with receiving(authority, HOST, "127.0.0.2", receiver.port) as other:
        await post.register(receiver.url())
        await post.announce("r1")
        await post.deliver(changing)
        assert (len(receiver.received), len(other.received)) == (1, 0)
    assert next(answers) == ["127.0.0.2"]  # not asked a second time


async def test_the_next_address_is_tried_where_one_does_not_connect(post: Post, receiver: Receiver) -> None:
    await post.register(receiver.url())
    await post.announce("r1")
    await post.deliver(lambda *_: resolve_to("127.0.0.3", "127.0.0.1"))
    assert len(receiver.received) == 1


@pytest.mark.parametrize(("host", "is_trusted"), [("someone-else.example", True), (HOST, False)])
async def test_the_certificate_must_be_trusted_and_the_hosts(
    post: Post,
    trusted: object,
    authority: trustme.CA,
    host: str,
    is_trusted: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "collidium.outbox")
    with receiving(authority if is_trusted else trustme.CA(), host) as receiver:
        receiver.host = HOST
        delivery = await post.attempt(receiver.url())
        assert receiver.received == []
    assert delivery.last_error == "no HTTPS answer"
    assert "SSLCertVerificationError" in caplog.text
    assert HOST not in caplog.text


@pytest.mark.parametrize("port", [1, 99999])
async def test_a_failed_connection_is_retried(post: Post, trusted: object, port: int) -> None:
    """Also one to a port that does not exist: such URLs were accepted once, and may be registered."""
    delivery = await post.attempt(f"https://{HOST}:{port}/")
    assert (delivery.state, delivery.last_error) == ("pending", "no HTTPS answer")


async def test_errors_do_not_reveal_open_ports(post: Post, receiver: Receiver) -> None:
    """What listens and does not answer, what is not HTTP, and what is not there have one name."""
    receiver.flood = b"220 mail.example ESMTP\r\n"
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        not_http, never_a_word = receiver.url(), f"https://{HOST}:{silent.getsockname()[1]}/"
        for account_id, url in enumerate((not_http, never_a_word, f"https://{HOST}:1/"), start=1):
            await post.register(url, account_id)
            await post.announce(f"r{account_id}", account_id=account_id)
        await post.deliver(webhook_timeout_seconds=0.5)
    logged = [
        (delivery.last_status, delivery.last_error) for n in (1, 2, 3) for delivery in await post.log(n)
    ]
    assert logged == [(None, "no HTTPS answer")] * 3


async def test_hosts_of_one_address_never_share_a_connection(
    post: Post, receiver: Receiver, authority: trustme.CA
) -> None:
    """The second host has no certificate there: a connection of the first must not carry what is its."""
    await post.register(receiver.url(), account_id=1)
    await post.register(f"https://other.example:{receiver.port}/", account_id=2)
    async with post.deliverer() as deliverer:
        for round_ in range(2):
            await post.announce(f"a{round_}", account_id=1)
            await deliverer.deliver_due()
            await post.announce(f"b{round_}", account_id=2)
            await deliverer.deliver_due()
    assert [d.state for d in await post.log(1)] == ["delivered"] * 2
    assert [d.state for d in await post.log(2)] == ["pending"] * 2
