"""Addresses, credentials and failures of connections."""

from __future__ import annotations

import gzip
import logging
import re
import socket
from pathlib import Path

import httpx
import pytest
from quart import Quart, request
from tests.core.client.servers import (
    Behaviour,
    answering,
    flooding,
    hanging_up,
    read_message,
    response,
    serving,
)

from collidium.client import AsyncClient, Client, save_token
from collidium.client.connection import LONGEST_ANSWER_BYTES
from collidium.errors import (
    CollidiumError,
    ConfigurationError,
    InvalidInput,
    Unauthenticated,
    Unreachable,
    UpstreamError,
)

TOKEN = "hf_very_secret_token"
HEALTHY = answering(response("200 OK", b'{"status": "ok", "version": "1"}', "application/json"))


@pytest.fixture(autouse=True)
def config_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


# -- address -----------------------------------------------------------------------------------------


def test_the_address_is_the_argument_or_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Client().backend == "http://127.0.0.1:8000"
    monkeypatch.setenv("PLATFORM_BACKEND", "https://collidium.example/prefix/")
    assert Client().backend == "https://collidium.example/prefix"
    assert Client("http://[::1]:9000").backend == "http://[::1]:9000"


@pytest.mark.parametrize(
    "address",
    ["", "  ", "127.0.0.1:8000", "ftp://x", "http://", "http://x?y=1", "http://x#y", "x"],
)
def test_an_invalid_address_is_rejected(address: str) -> None:
    with pytest.raises(ConfigurationError, match="PLATFORM_BACKEND must be an address like"):
        Client(address or " ")


def test_an_address_with_a_password_is_rejected_unseen() -> None:
    with pytest.raises(ConfigurationError) as caught:
        Client("https://alice:hunter2@collidium.example")
    assert "hunter2" not in caught.value.detail


# -- secrets -----------------------------------------------------------------------------------------


def test_the_token_is_the_argument_environments_or_logins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert sent_token() is None
    save_token("http://127.0.0.1:8000", "saved")
    save_token("http://elsewhere", "other")
    assert sent_token() == "saved"
    monkeypatch.setenv("HF_TOKEN", "environment")
    assert sent_token() == "environment"
    assert sent_token("argument") == "argument"


def test_an_empty_token_is_not_replaced_by_another_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "environment")
    monkeypatch.setenv("ADMIN_TOKEN", "environment")
    with pytest.raises(Unauthenticated, match="no token"):
        Client(token="").me()
    with pytest.raises(Unauthenticated, match="no admin token"):
        Client(admin_token="").admin_freeze()


def sent_token(token: str | None = None) -> str | None:
    return Client(token=token)._connection.token


def test_without_a_token_nothing_is_sent() -> None:
    save_token("https://other.example", TOKEN)
    with serving() as url, Client(url) as client:
        with pytest.raises(Unauthenticated, match="collidium login"):
            client.me()
        with pytest.raises(Unauthenticated, match="ADMIN_TOKEN"):
            client.admin_freeze()


def test_public_calls_carry_no_token() -> None:
    seen: list[bytes] = []

    def behave(connection: socket.socket) -> None:
        seen.append(connection.recv(65536))
        connection.sendall(response("200 OK", b"[]", "application/json"))

    with serving(behave) as url, Client(url, TOKEN, TOKEN) as client:
        assert len(client.tasks()) == 0
    assert seen
    assert TOKEN.encode() not in seen[0]


def test_no_secret_shows_anywhere(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    html = answering(response("500 Oh", b"<html>", "text/html"))
    with serving(html) as url, Client(url, TOKEN, TOKEN) as client:
        assert TOKEN not in repr(client) + repr(client._connection) + str(vars(client))
        with pytest.raises(Exception, match="500") as caught:
            client.me()
    assert TOKEN not in str(caught.value) + repr(caught.value) + caplog.text


@pytest.mark.parametrize("token", ["with space", "new\nline", "ünïcode", "bell\a"])
def test_an_invalid_token_is_rejected_without_being_shown(token: str) -> None:
    with Client(token=token, admin_token=token) as client:
        for call in (client.me, client.admin_freeze):
            with pytest.raises(ConfigurationError) as caught:
                call()
            assert token not in str(caught.value)


# -- broken exchanges --------------------------------------------------------------------------------


async def test_no_server_listens() -> None:
    with serving() as url:
        pass
    with Client(url) as client, pytest.raises(Unreachable, match=f"cannot reach {url}.*collidium serve"):
        client.health()
    async with AsyncClient(url) as client_:
        with pytest.raises(Unreachable, match=f"cannot reach {url}"):
            await client_.health()


def test_a_server_that_does_not_answer() -> None:
    def silent(connection: socket.socket) -> None:
        while connection.recv(65536):
            pass

    with (
        serving(silent) as url,
        Client(url, timeout=0.2) as client,
        pytest.raises(Unreachable, match=r"did not answer within 0\.2 s"),
    ):
        client.health()


@pytest.mark.parametrize("failures", [1, 2])
async def test_a_read_is_repeated_when_the_connection_breaks(failures: int) -> None:
    behaviours: list[Behaviour] = [hanging_up] * failures
    with serving(*behaviours, HEALTHY) as url, Client(url) as client:
        assert client.health().status == "ok"
    with serving(*behaviours, HEALTHY) as url:
        async with AsyncClient(url) as client_:
            assert (await client_.health()).status == "ok"


def test_a_read_is_repeated_a_limited_number_of_times() -> None:
    with serving(hanging_up, hanging_up, hanging_up, HEALTHY) as url, Client(url) as client:
        with pytest.raises(Unreachable, match="broke"):
            client.health()
        assert client.health().status == "ok"


def test_a_write_is_never_repeated() -> None:
    with serving(hanging_up, HEALTHY) as url, Client(url, TOKEN) as client:
        with pytest.raises(Unreachable, match="broke"):
            client.remove_webhook()
        assert client.health().status == "ok"


async def test_an_action_is_repeated_under_its_key() -> None:
    seen: list[str] = []

    def lost(connection: socket.socket) -> None:
        seen.append(read_message(connection).decode())

    def done(connection: socket.socket) -> None:
        lost(connection)
        connection.sendall(response("200 OK", b'{"submissions_frozen": true}', "application/json"))

    with serving(lost, done) as url, Client(url, admin_token=TOKEN) as client:
        assert client.admin_freeze().submissions_frozen
    with serving(lost, done) as url:
        async with AsyncClient(url, admin_token=TOKEN) as client_:
            assert (await client_.admin_freeze(idempotency_key="mine")).submissions_frozen
    keys = [re.findall(r"(?i)idempotency-key: (\S+)", headers) for headers in seen]
    assert keys[0] == keys[1] != keys[2] == keys[3] == ["mine"]
    assert len(keys[0]) == 1


@pytest.mark.parametrize(
    ("behaviour", "unknown"),
    [
        (hanging_up, True),
        (answering(response("502 Bad Gateway", b"<html>", "text/html")), True),
        (answering(response("500 Internal Server Error", b"{}", "application/problem+json")), True),
        (answering(response("503 Service Unavailable", b"{}", "application/problem+json")), False),
        (answering(response("409 Conflict", b"{}", "application/problem+json")), False),
    ],
)
def test_an_unknown_outcome_names_its_key(behaviour: Behaviour, unknown: bool) -> None:
    with (
        serving(behaviour, behaviour, behaviour) as url,
        Client(url, admin_token=TOKEN) as client,
        pytest.raises(CollidiumError) as caught,
    ):
        client.admin_freeze(idempotency_key="mine")
    assert caught.value.idempotency_key == ("mine" if unknown else None)


def test_an_invalid_idempotency_key_is_not_sent() -> None:
    with serving() as url, Client(url, admin_token=TOKEN) as client:
        for key in ("", "a b", "x" * 129):
            with pytest.raises(InvalidInput, match="Idempotency-Key"):
                client.admin_verify("submission", idempotency_key=key)


def test_a_proxy_is_not_used_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(HEALTHY) as url, Client(url) as client:
        assert client.health().status == "ok"


def test_invalid_compression_is_an_upstream_error() -> None:
    broken = response("200 OK", b"not gzip", "application/json", "Content-Encoding: gzip")
    with serving(answering(broken)) as url, Client(url) as client, pytest.raises(UpstreamError):
        client.health()


def expanding(connection: socket.socket) -> None:
    """Little on the wire, much in memory."""
    body = gzip.compress(b" " * (LONGEST_ANSWER_BYTES + 1), compresslevel=1)
    answering(response("200 OK", body, "application/json", "Content-Encoding: gzip"))(connection)


@pytest.mark.parametrize("behave", [flooding, expanding])
async def test_reading_an_endless_response_stops(behave: Behaviour) -> None:
    with serving(behave, HEALTHY) as url, Client(url) as client:
        with pytest.raises(UpstreamError, match=r"answered more than 64 MiB.*check PLATFORM_BACKEND"):
            client.health()
        assert client.health().status == "ok"
    with serving(behave, HEALTHY) as url:
        async with AsyncClient(url) as client_:
            with pytest.raises(UpstreamError, match=r"answered more than 64 MiB.*check PLATFORM_BACKEND"):
                await client_.health()
            assert (await client_.health()).status == "ok"


# -- several accounts over one pool ----------------------------------------------------------------------


def echoing_caller() -> Quart:
    app = Quart("echo")

    @app.get("/v1/me")
    async def me() -> tuple[dict[str, object], dict[str, str]]:
        assert "X-Admin-Token" not in request.headers
        assert "Cookie" not in request.headers
        name = request.headers["Authorization"].removeprefix("Bearer ")
        answer = {"hub_username": name, "credits": 0, "banned": False, "created_at": "2026-01-01T00:00:00Z"}
        return answer, {"Set-Cookie": f"proxy={name}; Path=/"}

    return app


async def test_a_server_in_process_serves_several_accounts() -> None:
    way = httpx.ASGITransport(echoing_caller())
    async with AsyncClient("http://here", token="", admin_token="secret", transport=way) as anonymous:
        alice, bob = anonymous.acting_as("alice"), anonymous.acting_as("bob")
        assert (await alice.me()).hub_username == "alice"
        assert (await bob.me()).hub_username == "bob"
        assert alice.backend == anonymous.backend == "http://here"
