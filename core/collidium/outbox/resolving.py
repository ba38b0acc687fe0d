"""Finds the addresses of a host, and refuses a host that leads anywhere but to the public internet."""

from __future__ import annotations

import asyncio

from collidium.outbox.addresses import is_public
from collidium.outbox.look_ups import Resolve


class Refused(Exception):
    """This host is not told anything; the message says why, and no address of the server's own network."""


async def addresses_of(
    host: str, port: int, account_id: int | None, *, private: bool, resolve: Resolve, seconds: float
) -> list[str]:
    """Where to connect for ``host``, looked up for an account, if one asks.

    Raises Refused for a host with any address that is not allowed, Unavailable where nothing can be looked up
    now.
    """
    try:
        async with asyncio.timeout(seconds):
            addresses = list(await resolve(host, port, account_id))
    except TimeoutError:
        raise Refused("its host cannot be looked up now") from None
    except (OSError, UnicodeError):
        raise Refused("its host cannot be found") from None
    if not addresses:
        raise Refused("its host cannot be found")
    if not private and not all(map(is_public, addresses)):
        raise Refused("its host leads to an address that is not public")
    return addresses
