"""Which addresses are public, and a hook for httpx that rejects redirects to others.

The networks are from IANA's registries of special-purpose addresses (RFC 6890 and its successors). They are
listed here because ``ipaddress.is_global`` differs between releases of Python.
"""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from collidium.runtime.look_ups import look_up

if TYPE_CHECKING:
    import httpx

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
            "192.0.2.0/24",  # documentation, as 198.51.100.0 and 203.0.113.0
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
#: The only block that is allocated for global unicast. Loopback, private, link-local and multicast addresses
#: are outside of it, and those that contain an IPv4 address (mapped, NAT64).
_PUBLIC_6: Final = ip_network("2000::/3")


def is_public(address: str) -> bool:
    """Whether an address, as a resolver returns it, belongs to the public internet."""
    parsed = ip_address(address)
    if isinstance(parsed, IPv6Address) and (parsed.scope_id is not None or parsed not in _PUBLIC_6):
        return False
    return not any(parsed in network for network in _NOT_PUBLIC)


def refuse_redirect(response: httpx.Response) -> None:
    """Reject unsafe redirects; a response hook for httpx. Blocks on look-ups.

    Raises
    ------
    httpx.InvalidURL
        For a redirect from HTTPS to another scheme, to a URL with a user name or a password, or from a host
        with public addresses to another host without.
    """
    import httpx

    if not response.has_redirect_location:
        return
    here = response.request.url
    target = here.join(response.headers["Location"])
    if target.scheme not in ("https", here.scheme) or target.userinfo:
        raise httpx.InvalidURL("it redirects to an address that is not followed")
    if target.host != here.host and _is_public(here.host) and not _is_public(target.host):
        raise httpx.InvalidURL("it redirects to an address that is not public")


def _is_public(host: str) -> bool:
    return all(map(is_public, look_up(host)))
