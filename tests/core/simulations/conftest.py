"""A platform in this process, on a database of its own, with the mock runner or one of the test's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from decimal import Decimal
from pathlib import Path

import pytest
from tests.core.simulations.scripted import Bringing
from tests.waiting import eventually_async

from collidium import accounts, plugins, records, settings, simulations
from collidium.accounts import AccountView
from collidium.contracts.runner import Runner
from collidium.platform import Platform
from collidium.simulations import DeliveryOptions, Order

OpenPlatform = Callable[..., AbstractAsyncContextManager[Platform]]

ORDER = Order("single_muon", events=2, pileup=0)
DELIVERY = DeliveryOptions(token="hf_a_token_of_a_test")
GRANT = Decimal(10)


@pytest.fixture
def open_platform(migrated_database_url: str, tmp_path: Path) -> OpenPlatform:
    """Opens the platform in mock mode, or with a runner of the test's own; keywords are settings."""

    @asynccontextmanager
    async def opened(runner: Runner | None = None, **overrides: object) -> AsyncIterator[Platform]:
        loaded = plugins.load()
        chosen: dict[str, object] = {"mock_seconds": 0.1}
        if runner is not None:
            loaded.manager.register(Bringing(runner), name="brought")
            chosen = {"run_mode": "real", "runner": runner.name}
        configured = settings.load(
            data_dir=tmp_path / "data", database_url=migrated_database_url, **(chosen | overrides)
        )
        async with Platform.open(configured, loaded) as platform:
            yield platform

    return opened


async def sign_up(name: str) -> AccountView:
    """A new account with its grant."""
    return await accounts.recognise(name, signup_grant=GRANT)


async def balance(name: str) -> Decimal:
    """What an account has."""
    return (await accounts.find(name)).credits


async def order(platform: Platform, account: AccountView, ordered: Order = ORDER) -> str:
    """Place an order that nothing answers yet; its request's id."""
    placed = await simulations.place(platform, account, ordered, DELIVERY)
    assert not placed.cached
    return placed.request_id


async def ended(request_id: str) -> records.SimulationRequest:
    """The request once it has ended."""
    return await reached(request_id, "completed", "failed", "cancelled")


async def followed(platform: Platform) -> records.SimulationRequest:
    """An order of alice's once it has ended; the books are sound then."""
    async with simulations.following(platform):
        request = await ended(await order(platform, await sign_up("alice")))
    await assert_sound()
    return request


async def reached(request_id: str, *states: str) -> records.SimulationRequest:
    """The request once it is in one of the states."""

    async def there() -> bool:
        return (await simulations.find(request_id)).state in states

    await eventually_async(there)
    return await simulations.find(request_id)


async def assert_sound() -> None:
    """Ledger and totals add up, and charged = consumed + refunded for every request that ended."""
    assert await accounts.audit() == []
    assert await simulations.audit() == []
