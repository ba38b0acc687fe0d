"""Who calls: bearer tokens of hub accounts, sessions of browsers, and the operators' shared secret."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import ParamSpec, TypeVar, cast

from quart import g, request
from quart_schema import security_scheme

from collidium import accounts
from collidium.accounts import AccountView
from collidium.api import browsers
from collidium.api.context import caller_address, platform
from collidium.benchmarks.submissions import links
from collidium.contracts.identity import Identity
from collidium.errors import Unauthenticated
from collidium.sessions import Session

P = ParamSpec("P")
T = TypeVar("T")


async def caller() -> AccountView:
    """The account whose token or session the request carries; a header decides where there are both.

    Raises Unauthenticated without a valid token, TooManyRequests for too many unknown ones, Forbidden for a
    banned account and for what a browser sent that no page of ours did, and
    :class:`~collidium.contracts.identity.IdentityUnavailable` when tokens cannot be checked now.
    """
    if "caller" not in g:
        session = None if "Authorization" in request.headers else await _session()
        token = session.token if session else _bearer_token()
        address = caller_address(platform().settings.trusted_proxies)
        identity = await platform().identities.identify(token, address)
        if identity is None:
            if session is None:
                raise Unauthenticated("the token is not valid", challenge='Bearer error="invalid_token"')
            await platform().sessions.end(session.key)
            raise Unauthenticated(browsers.ENDED)
        g.identity, g.token = identity, token
        grant = platform().settings.signup_grant
        g.caller = await accounts.recognise(identity.username, signup_grant=grant)
    return cast(AccountView, g.caller)


async def caller_token() -> str:
    """The caller's hub token; raises as :func:`caller` does."""
    await caller()
    return cast(str, g.token)


async def token_is_read_only() -> bool:
    """Whether nothing can be published with the caller's token; raises as :func:`caller` does."""
    await caller()
    return cast(Identity, g.identity).read_only


async def check_claim(model_repo: str) -> links.Claim | None:
    """What the caller may claim of a model repository, checked with its token; None: the hub is away."""
    await caller()
    return await links.check_claim(platform().identities, g.identity, g.token, model_repo)


def signed_in(handler: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Ask who calls before anything of the request is read; goes above what validates it.

    The OpenAPI document says so, too.
    """

    @security_scheme([{"hub_token": []}])
    @wraps(handler)
    async def only_accounts(*arguments: P.args, **options: P.kwargs) -> T:
        await caller()
        return await handler(*arguments, **options)

    return only_accounts


async def _session() -> Session | None:
    """The session of the browser that calls, on ``/v1`` alone; None without a cookie.

    What changes something has to prove that a page of ours sent it, before anything is looked up or written.
    """
    settings = platform().settings
    key = browsers.read_cookie(settings, browsers.SESSION)
    if not key or not request.path.startswith("/v1/"):
        return None
    if request.method in browsers.SAFE:
        if browsers.is_from_another_site():
            return None
    else:
        browsers.require_own_origin(settings)
        browsers.require_secret(key, request.headers.get(browsers.CSRF_HEADER, ""))
    session = await platform().sessions.find(key)
    if session is None:
        raise Unauthenticated(browsers.ENDED)
    return session


def _bearer_token() -> str:
    scheme, _, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthenticated("send your hub token as: Authorization: Bearer TOKEN")
    return token.strip()


def require_operator() -> str:
    """The operator's name for the audit log; raises Unauthenticated without the right X-Admin-Token."""
    configured = platform().settings.admin_token
    sent = request.headers.get("X-Admin-Token", "").encode()
    if configured is None or not configured.get_secret_value():
        raise Unauthenticated("closed: the server has no ADMIN_TOKEN", challenge="X-Admin-Token")
    if not hmac.compare_digest(sent, configured.get_secret_value().encode()):
        raise Unauthenticated("X-Admin-Token is missing or wrong", challenge="X-Admin-Token")
    return "admin"


def require_metrics_token() -> None:
    """Raise Unauthenticated without the token of ``/metrics``, which the operators' own replaces."""
    configured = platform().settings.metrics_token
    expected = f"Bearer {configured.get_secret_value()}" if configured else ""
    if not expected or not hmac.compare_digest(
        request.headers.get("Authorization", "").encode(), expected.encode()
    ):
        require_operator()


async def only_operators() -> None:
    """Before anything of a request is read: others do not even learn what a good request looks like."""
    require_operator()


def request_id() -> str:
    """The id of this request, for the audit log."""
    return str(g.request_id)
