"""``/sso``: sign-in with the provider, and the page on which an account creates its token for programs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING, Any

from quart import Blueprint, Response

from collidium.accounts import sso
from collidium.contracts.identity import OWN_PREFIX
from collidium.errors import UpstreamError
from collidium_plugins.webapps import context, site
from collidium_plugins.webapps.rendering import render
from collidium_plugins.webapps.sign_in import routes
from collidium_plugins.webapps.sign_in.flow import OAuthClient, OAuthProvider

if TYPE_CHECKING:
    from collidium.settings import Settings

PREFIX = "/sso"
CALLBACK = f"{PREFIX}/callback"


def make_blueprint(settings: Settings) -> Blueprint:
    """Make the pages below ``/sso`` for the provider of the settings."""
    secret = settings.oidc_client_secret.get_secret_value() if settings.oidc_client_secret else None
    provider = OAuthProvider(settings.oidc_issuer, "PLATFORM_OIDC_ISSUER")
    client = OAuthClient(provider, settings.oidc_client_id, secret)

    async def sign_in() -> Response:
        """``GET /sso/sign-in?next=``: redirects to the provider"""
        return await routes.start(client, CALLBACK, settings.oidc_scopes)

    async def callback() -> Response:
        """``GET /sso/callback?code=&state=``: redirect from the provider; begins a session"""
        pending, grant = await routes.finish(client, CALLBACK)
        name = await _account(grant.claims, settings)
        seconds = settings.session_hours * 3600
        token, _ = await sso.issue(name, session_seconds=seconds)
        # All scopes: the hub grants nothing to such a token, so asking it for more would be useless.
        scopes = {*settings.oauth_order_scopes, *settings.oauth_link_scopes}
        return await routes.begin_session(pending, token, seconds, scopes)

    blueprint = site.make_blueprint(
        PREFIX,
        [
            ("GET", "/sign-in", sign_in),
            ("GET", "/callback", callback),
            ("GET", "", show),
            ("POST", "", make_token),
        ],
    )

    @blueprint.while_app_serving
    async def serve() -> AsyncGenerator[None]:
        yield
        await provider.close()

    return blueprint


async def _account(claims: Mapping[str, Any], settings: Settings) -> str:
    """Return the account name of an id token; raises UpstreamError for claims of wrong types."""
    subject, called = claims["sub"], claims.get("preferred_username") or ""
    groups = claims.get(settings.oidc_groups_claim) or []
    groups = [groups] if isinstance(groups, str) else groups
    if not (isinstance(subject, str) and isinstance(called, str) and isinstance(groups, list)):
        raise UpstreamError("the identity provider's id token has claims of wrong types")
    # Keycloak writes groups as paths.
    names = [group.removeprefix("/") for group in groups if isinstance(group, str)]
    email = claims.get("email") if claims.get("email_verified") is True else ""
    address = email if isinstance(email, str) else ""
    return await sso.recognise(settings.oidc_issuer, subject, called, names, address)


async def show() -> Response:
    """``GET /sso``: shows whether the account has a token for programs"""
    session = context.signed_in()
    return await _page(session.token)


async def make_token() -> Response:
    """``POST /sso``: creates a token, which only this response shows"""
    session = context.signed_in()
    # Raises for a banned account and for an expired session.
    await context.backend_as_user().me()
    token, _ = await sso.issue(session.hub_username)
    return await _page(session.token, token)


async def _page(session_token: str, token: str = "") -> Response:
    return await render(
        "sso.html",
        of_sso=session_token.startswith(OWN_PREFIX),
        token=token,
        ends_at=await sso.token_ends_at(context.signed_in().hub_username),
    )
