"""Looks up where receivers are, and refuses those that nothing may be sent to."""

from __future__ import annotations

import asyncio
from typing import Final

from collidium.outbox.addresses import is_public
from collidium.runtime.look_ups import LookUps, Resolve

#: That of those who give a URL and wait for the answer.
look_up: Final[Resolve] = LookUps().look_up


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
