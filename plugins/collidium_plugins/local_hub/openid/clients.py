"""The only OAuth client of the hub: the platform's pages."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from collidium.errors import ConfigurationError

if TYPE_CHECKING:
    from collidium.settings import Settings

#: Path of the pages' redirect URI.
CALLBACK: Final = "/web/callback"

_ADDRESS: Final = re.compile(r"(?P<origin>https?://[A-Za-z0-9.:\[\]_-]+)/[A-Za-z0-9./_~%-]*")


@dataclass(frozen=True, slots=True)
class Client:
    """A registered application."""

    id: str
    #: Empty for a public client, which only uses PKCE.
    secret: str = ""
    #: Redirect URIs in addition to the pages of the hub's own server.
    redirect_uris: tuple[str, ...] = ()

    def may_redirect_to(self, address: str, own: str) -> bool:
        """Whether users may be redirected to an address; ``own`` is the address of our pages, or empty.

        Addresses must be identical (RFC 9700, section 2.1). Several names of one machine do not count as
        equal: another user may listen on one of them.
        """
        known = (f"{own}{CALLBACK}", *self.redirect_uris)
        return address in known and _ADDRESS.fullmatch(address) is not None

    def has_credentials(self, client_id: str, secret: str) -> bool:
        """Compare id and secret in constant time."""
        same_id = hmac.compare_digest(client_id.encode(errors="replace"), self.id.encode())
        return hmac.compare_digest(secret.encode(errors="replace"), self.secret.encode()) and same_id


def client_of(settings: Settings) -> Client:
    """Return the client of the settings; raises ConfigurationError for a malformed redirect URI."""
    for address in settings.oauth_redirect_uris:
        if not _ADDRESS.fullmatch(address):
            raise ConfigurationError(
                f"PLATFORM_OAUTH_REDIRECT_URIS: {address!r} must be like https://pages.example.org{CALLBACK}"
            )
    own = (f"{settings.public_url}{CALLBACK}",) if settings.public_url else ()
    secret = settings.oauth_client_secret
    return Client(
        settings.oauth_client_id,
        secret.get_secret_value() if secret else "",
        (*own, *settings.oauth_redirect_uris),
    )


def origin_of(address: str) -> str:
    """Return scheme, host and port of an accepted redirect URI."""
    match = _ADDRESS.fullmatch(address)
    assert match is not None, "only such addresses are accepted"  # noqa: S101 -- for the type checker
    return match["origin"]
