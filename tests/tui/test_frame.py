"""What is there whatever screen is shown: login, status, freeze."""

from __future__ import annotations

from tests.tui.consoles import console_on, says, signed_in, types

from collidium.client import Client
from collidium.testing.server import ServerProcess


async def test_a_wrong_token_is_told_and_asked_for_again(backend: ServerProcess) -> None:
    async with console_on(backend.base_url, None) as pilot:
        await says(pilot, "Sign in as operator")
        await types(pilot, "token", "wrong")
        await pilot.press("enter")
        await says(pilot, "X-Admin-Token is missing or wrong", "Sign in as operator")
        await types(pilot, "token", backend.admin_token)
        await pilot.press("enter")
        await says(pilot, "connected", "open")


async def test_two_keys_freeze_and_two_keys_open_again(backend: ServerProcess) -> None:
    with Client(backend.base_url, token="", admin_token=backend.admin_token) as client:
        async with signed_in(backend) as pilot:
            await pilot.press("ctrl+f")
            await says(pilot, "Freeze the platform", "are refused")
            await pilot.press("y")
            await says(pilot, "*** FROZEN ***")
            assert client.ready().submissions_frozen
            await pilot.press("ctrl+f")
            await says(pilot, "Unfreeze the platform")
            await pilot.press("y")
            await says(pilot, "open")
            assert not client.ready().submissions_frozen


async def test_what_operators_did_is_listed(backend: ServerProcess) -> None:
    with Client(backend.base_url, token="", admin_token=backend.admin_token) as client:
        client.admin_ban("mallory")
    async with signed_in(backend, "Audit") as pilot:
        await says(pilot, "mallory", "ban")
