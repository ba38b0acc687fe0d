"""The hub that a server is seeded on, and the account that publishes there."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from collidium.errors import CollidiumError
from collidium.files import durable
from collidium.hub.client import Hub
from collidium.hub.sources import find_hub
from collidium.runtime import subprocesses

if TYPE_CHECKING:
    from collidium.seeding.state import State
    from collidium.settings import Settings

#: The account that submits, on the platform and on a local hub.
ACCOUNT: Final = "baselines"
_TOKEN: Final = "hub-token"  # noqa: S105 -- the name of a file


def endpoint_of(settings: Settings) -> str:
    """Return the address of the server's hub: its local one is below PLATFORM_BACKEND."""
    backend = os.environ.get("PLATFORM_BACKEND") or settings.base_url
    return find_hub(settings.hub_url or f"{backend.rstrip('/')}/hub", "").endpoint


async def hub_problem(endpoint: str, token: str, *, local: bool) -> str | None:
    """Return why nothing can be published on the hub; None if it can."""
    if not local and not token:
        return f"HF_TOKEN is missing: a token that may write on the hub {endpoint}"
    try:
        if token:
            role = await Hub(endpoint, token).ask(lambda api: _role(api.whoami()))
            return f"the token in HF_TOKEN may not write on {endpoint}" if role == "read" else None
        await Hub(endpoint, "").ask(lambda api: list(api.list_datasets(limit=1)))
    except RuntimeError as error:
        start = "; run `collidium serve`, and set PLATFORM_BACKEND if it is not at its default port"
        return f"{endpoint}: {error}{start if local else ''}"
    return None


def _role(whoami: dict[str, Any]) -> object:
    token = (whoami.get("auth") or {}).get("accessToken") or {}
    return token.get("role")


async def sign_in(settings: Settings, state: State, *, local: bool) -> str:
    """Return the token to publish with, on a local hub that of an account made when absent.

    Raises CollidiumError where there is an account of that name which an earlier run did not make.
    """
    if not local:
        return find_hub(endpoint_of(settings)).token or ""
    path = state.directory / _TOKEN
    if path.exists():
        return path.read_text("ascii").strip()
    name = f"account {ACCOUNT}"
    if name in state.begun:  # its token may have been lost with the process
        known = {account["name"] for account in await _user("list")}
        made = await _user("add", ACCOUNT, *(["--new-token"] if ACCOUNT in known else []))
    else:
        state.begin(name)
        try:
            made = await _user("add", ACCOUNT)
        except CollidiumError:
            state.begun.remove(name)
            state.save()
            raise
    durable.replace(path, made["token"], mode=0o600)
    return str(made["token"])


def saved_token(settings: Settings, state: State, *, local: bool) -> str:
    """Return the token of an earlier run or of the environment; empty without one."""
    path = state.directory / _TOKEN
    if local:
        return path.read_text("ascii").strip() if path.exists() else ""
    return find_hub(endpoint_of(settings)).token or ""


async def _user(*arguments: str) -> Any:
    """Run ``collidium user``, which the plugin of the local hub brings."""
    words = [sys.executable, "-P", "-m", "collidium", "user", *arguments, "--json"]
    done = await asyncio.to_thread(subprocesses.run, words, 60)
    if done.returncode:
        raise CollidiumError(f"`collidium user {arguments[0]}` failed: {done.stderr.strip()}")
    return json.loads(done.stdout)
