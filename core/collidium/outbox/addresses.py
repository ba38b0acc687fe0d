"""Which addresses belong to the public internet: webhooks must not lead to what stands behind the server.

From IANA's registries of special-purpose addresses (RFC 6890 and what came after it), written out because
``ipaddress.is_global`` changes its mind between releases of Python.
"""

from __future__ import annotations

import asyncio
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final

from collidium.runtime.look_ups import LookUps, Resolve

_NOT_PUBLIC: Final = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",
            "100.64.0.0/10",  # shared by the customers of one provider
            "127.0.0.0/8",
            "169.254.0.0/16",  # link-local, where clouds keep their metadata
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation, as are 198.51.100.0 and 203.0.113.0
            "192.88.99.0/24",  # relays of 6to4
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks of networks
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
            "2001::/23",  # protocol assignments, among them Teredo, which holds an IPv4 address
            "2001:db8::/32",  # documentation, as is 3fff::
            "2002::/16",  # 6to4, which holds an IPv4 address
            "3fff::/20",
        ),
    )
)
#: All that was ever given out for the public. Loopback, private, link-local and multicast addresses lie
#: outside, and those that hold an IPv4 address (mapped, NAT64).
_PUBLIC_6: Final = ip_network("2000::/3")


def is_public(address: str) -> bool:
    """Whether the address, as a resolver gives it, is one of the public internet."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address) and (parsed.scope_id is not None or parsed not in _PUBLIC_6):
        return False
    return not any(parsed in network for network in _NOT_PUBLIC)


#: That of those who give a URL and wait for the answer.
look_up: Final[Resolve] = LookUps().look_up


class Refused(Exception):
    """Nothing is sent to this host; the message gives the reason, and no address of the server's network."""


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
