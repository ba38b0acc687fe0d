"""``collidium webhook``, as a user types it against a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import trustme
from standardwebhooks import Webhook
from tests.core.cli.conftest import Caller
from tests.core.outbox.receiver import Receiver, notifying, receiving
from tests.waiting import eventually

from collidium.client import Client
from collidium.testing.server import ServerProcess


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Iterator[ServerProcess]:
    directory = tmp_path_factory.mktemp("server")
    with ServerProcess(directory, env=notifying(authority, directory)) as running:
        yield running


@pytest.fixture
def receiver(authority: trustme.CA) -> Iterator[Receiver]:
    with receiving(authority, "127.0.0.1") as receiver:
        yield receiver


def test_a_webhook_from_its_beginning_to_its_end(server: ServerProcess, receiver: Receiver) -> None:
    alice = Caller(server, "alice")
    assert alice("webhook", "show").returncode == 3
    made = alice("webhook", "set", receiver.url())
    assert made.returncode == 0, made.stderr
    secret = made.stdout.split()[-1]
    assert receiver.url() in made.stdout
    assert secret.startswith("whsec_")
    assert "not shown again" in made.stderr
    again = alice("webhook", "set", receiver.url("/new"))
    assert "whsec_" not in again.stdout + again.stderr
    shown = alice.data("webhook", "show")
    assert (set(shown), shown["url"]) == ({"url", "created_at"}, receiver.url("/new"))
    rotated = alice.data("webhook", "set", "--rotate-secret")
    assert (rotated["url"], rotated["secret"] == secret) == (receiver.url("/new"), False)

    with Client(server.base_url, alice.environment["HF_TOKEN"]) as client:
        request = client.simulate("single_muon", 1, 0)
        eventually(lambda: [d.state for d in client.webhook_deliveries()] == ["delivered"])
        assert "secret" not in repr(client.webhook())
    (delivery,) = receiver.received
    assert (
        Webhook(rotated["secret"]).verify(delivery.body, delivery.headers)["data"]["request_id"]
        == request.request_id
    )
    (delivery,) = alice.data("webhook", "deliveries")
    assert (delivery["reference"], delivery["last_status"]) == (request.request_id, 204)
    assert request.request_id in alice("webhook", "deliveries", "--limit", "1").stdout

    assert "is removed" in alice("webhook", "remove").stderr
    assert alice.data("webhook", "remove") == {"removed": False}
