"""A receiver that is trusted, and everything that delivers to it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography.fernet import Fernet
from tests.core.outbox.receiver import Receiver, receiving

from collidium import outbox, settings
from collidium.outbox.deliverer import Deliverer
from collidium.outbox.sending import Sender
from collidium.records import WebhookDelivery
from collidium.runtime.look_ups import Resolve
from collidium.secrets import Secrets

#: A name that only the tests' resolver knows.
HOST = "receiver.example"
#: Delivers until it is killed.
DELIVERER = """
import asyncio, sys
from collidium import database, outbox, settings
from collidium.secrets import Secrets

async def main(url, key):
    async with database.connected(url):
        async with outbox.delivering(settings.load(webhook_private_addresses=True), Secrets([key])):
            await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


class Clock:
    """The time, as far as deliveries know it."""

    def __init__(self) -> None:
        self.moment = datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.moment

    def forward(self, **span: float) -> None:
        self.moment += timedelta(**span)


async def resolve_to_loopback(host: str, port: int, account_id: int | None) -> Sequence[str]:
    return ["127.0.0.1"]


@dataclass
class Post:
    """Announces events of account 1 and delivers them."""

    #: What secrets are encrypted with.
    key: str
    secrets: Secrets
    clock: Clock = field(default_factory=Clock)

    async def register(self, url: str | None, account_id: int = 1) -> str:
        """Set the account's webhook; its secret."""
        secret = (await outbox.register(account_id, self.secrets, url=url)).secret
        assert secret is not None
        return secret

    async def announce(self, *request_ids: str, account_id: int = 1) -> None:
        for request_id in request_ids:
            record = {"request_id": request_id, "state": "completed"}
            await outbox.announce("job", [account_id], request_id, record)
        self.clock.moment = datetime.now(UTC)

    @asynccontextmanager
    async def deliverer(
        self, resolve: Resolve = resolve_to_loopback, **overrides: object
    ) -> AsyncIterator[Deliverer]:
        """One that may lead to loopback; ``overrides`` are settings."""
        chosen = settings.load(**{"webhook_private_addresses": True, **overrides})
        yield Deliverer(Sender(chosen, resolve), self.secrets, chosen, self.clock)

    async def deliver(self, resolve: Resolve = resolve_to_loopback, **overrides: object) -> int:
        """Attempt all that is due; how many attempts that were."""
        async with self.deliverer(resolve, **overrides) as deliverer:
            return await deliverer.deliver_due()

    @asynccontextmanager
    async def killed_deliverer(self, database_url: str) -> AsyncIterator[None]:
        """Another process delivers while the context lasts, and is killed then."""
        command = (sys.executable, "-c", DELIVERER, database_url, self.key)
        child = await asyncio.create_subprocess_exec(*command)
        try:
            yield
        finally:
            child.kill()
            await child.wait()

    async def attempt(
        self, url: str, resolve: Resolve = resolve_to_loopback, **overrides: object
    ) -> WebhookDelivery:
        """Register the URL, announce an event and try to deliver it; what the log says of it."""
        await self.register(url)
        await self.announce("r1")
        assert await self.deliver(resolve, **overrides) == 1
        (delivery,) = await self.log()
        return delivery

    async def log(self, account_id: int = 1) -> list[WebhookDelivery]:
        """The deliveries, oldest first."""
        return (await outbox.log_of(account_id, limit=1000))[::-1]


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the authority that the sender trusts."""
    file = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(file))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    return file


@pytest.fixture
def receiver(authority: trustme.CA, trusted: Path) -> Iterator[Receiver]:
    with receiving(authority, HOST) as receiver:
        yield receiver


@pytest.fixture
def post(connected: str) -> Post:
    key = Fernet.generate_key().decode()
    return Post(key, Secrets([key]))
