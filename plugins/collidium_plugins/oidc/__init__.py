"""Single sign-on on the pages with any OpenID provider, in addition to the hub.

The provider only issues an id token. These accounts use tokens of the platform itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collidium import hookspecs
from collidium.contracts.identity import OWN_PREFIX, Identity, IdentityProvider

if TYPE_CHECKING:
    from quart import Blueprint

    from collidium.settings import Settings


class SsoIdentity(IdentityProvider):
    """Accounts of single sign-on, by the platform's own tokens."""

    name = "oidc"
    prefix = OWN_PREFIX

    def __init__(self, issuer: str, scopes: Sequence[str]) -> None:
        """``issuer`` is the issuer of the accounts, ``scopes`` those that sign-ins request."""
        self._issuer = issuer
        self._scopes = scopes

    async def identify(self, token: str) -> Identity | None:
        from collidium.accounts import sso

        return await sso.owner(token, self._issuer)

    async def check(self) -> str:
        """Read the issuer's discovery document and keys."""
        from collidium_plugins.webapps.sign_in.flow import OAuthProvider

        if not self._issuer:
            return ""
        if "openid" not in self._scopes:
            raise ValueError("PLATFORM_OIDC_SCOPES has no `openid`")
        provider = OAuthProvider(self._issuer, "PLATFORM_OIDC_ISSUER")
        try:
            await provider.keys()
            offered = (await provider.endpoints()).scopes
        finally:
            await provider.close()
        # A provider need not list all of its scopes (OpenID Connect Discovery, 3).
        unknown = ", ".join(set(self._scopes) - offered) if offered else ""
        return f"the provider does not list these of PLATFORM_OIDC_SCOPES: {unknown}" if unknown else ""

    async def close(self) -> None:
        """Do nothing: the database belongs to the platform."""


@hookspecs.hookimpl
def collidium_identity_providers(settings: Settings) -> Sequence[IdentityProvider]:
    return [SsoIdentity(settings.oidc_issuer, settings.oidc_scopes)]


@hookspecs.hookimpl
def collidium_blueprints(settings: Settings) -> Sequence[Blueprint]:
    from collidium_plugins.oidc.pages import make_blueprint

    return [make_blueprint(settings)] if settings.oidc_issuer else []
