"""Validation of webhook URLs: their form, and that their hosts have public addresses only."""

from __future__ import annotations

import asyncio
import re
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Final

import httpx

from collidium.errors import InvalidInput
from collidium.runtime.look_ups import LookUps, Resolve
from collidium.runtime.public_addresses import is_public

if TYPE_CHECKING:
    from collidium.settings import Settings

#: The look-ups for registrations, whose callers wait for the response.
look_up: Final[Resolve] = LookUps().look_up


class Refused(Exception):
    """No event is sent to this URL. The message gives the reason, without addresses of hosts."""


async def addresses_of(
    host: str, port: int, account_id: int | None, *, private: bool, resolve: Resolve, seconds: float
) -> list[str]:
    """Look up the addresses of ``host``, on behalf of an account or of none.

    Raises Refused if there is none or any is not allowed, Unavailable and TooManyRequests.
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


LONGEST_URL: Final = 2000
HTTPS_PORT: Final = 443
LAST_PORT: Final = 65_535
#: A host's name, or an IPv4 address.
_NAME: Final = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9._-]*[a-z0-9])?")
#: Timeout of the look-up of a host while a caller waits.
LOOK_UP_SECONDS: Final = 5.0


def canonical_url(url: str, *, field: str = "webhook_url") -> str:
    """Return the normalised URL. Raises InvalidInput for ``field`` if its form is not allowed.

    Its host is not looked up, so the result depends on the text alone.
    """
    try:
        return str(_parsed(url))
    except Refused as refused:
        raise _unusable(field, refused) from None


async def require_reachable(
    url: str,
    settings: Settings,
    *,
    account_id: int | None = None,
    field: str = "webhook_url",
    resolve: Resolve = look_up,
) -> None:
    """Raise InvalidInput if the host of a URL has no addresses, or any that are not public.

    This is checked again before each delivery. Raises TooManyRequests while another look-up for the account
    is running, and Unavailable if there are too many.
    """
    try:
        parsed = _parsed(url)
        await addresses_of(
            host_of(parsed),
            parsed.port or HTTPS_PORT,
            account_id,
            private=settings.webhook_private_addresses,
            resolve=resolve,
            seconds=LOOK_UP_SECONDS,
        )
    except Refused as refused:
        raise _unusable(field, refused) from None


def _unusable(field: str, refused: Refused) -> InvalidInput:
    problem = {"field": field, "detail": str(refused)}
    return InvalidInput(f"{field} cannot be used: {refused}", errors=[problem])


def host_of(url: httpx.URL) -> str:
    """Return the host as resolvers and certificates use it."""
    return url.raw_host.decode("ascii").removesuffix(".")


def _is_host(text: str) -> bool:
    if ":" not in text:
        return _NAME.fullmatch(text) is not None
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _parsed(url: str) -> httpx.URL:
    if len(url) > LONGEST_URL:
        raise Refused(f"it is longer than {LONGEST_URL} characters")
    try:
        # Twice: after HTTPS:// in capitals, the first keeps a redundant :443.
        parsed = httpx.URL(str(httpx.URL(url)))
    except (httpx.InvalidURL, ValueError):  # ValueError for text that cannot be encoded
        raise Refused("it is not a URL") from None
    if parsed.scheme != "https" or not _is_host(host_of(parsed)):
        raise Refused("it must begin with https:// and name a host")
    if parsed.userinfo:
        raise Refused("it must not hold a user name or a password")
    if parsed.port is not None and not 1 <= parsed.port <= LAST_PORT:
        raise Refused(f"its port must be 1 to {LAST_PORT}")
    if parsed.fragment:
        raise Refused("it must not have a fragment (#)")
    if len(str(parsed)) > LONGEST_URL:
        raise Refused(f"it is longer than {LONGEST_URL} characters")
    return parsed
