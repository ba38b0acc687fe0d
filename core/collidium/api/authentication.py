"""Who calls: bearer tokens of hub accounts, sessions of browsers, and tokens of operators."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import wraps
from typing import Final, ParamSpec, TypedDict, TypeVar, cast

from quart import g, request
from quart_schema import security_scheme
from tortoise.timezone import now

from collidium import accounts, operations
from collidium.accounts import AccountView, sso
from collidium.api import browsers
from collidium.api.context import caller_address, platform
from collidium.benchmarks.submissions import links
from collidium.contracts.identity import Identity
from collidium.errors import Forbidden, Unauthenticated
from collidium.operations import Scope
from collidium.records import Operator
from collidium.runtime import logs
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
        logs.account.set(identity.username)
        g.caller = await accounts.recognise(identity.username, signup_grant=grant)
    return cast(AccountView, g.caller)


async def hub_token() -> str | None:
    """The caller's hub token, None for accounts that have none; raises as :func:`caller` does."""
    await caller()
    return cast(str, g.token) if cast(Identity, g.identity).on_hub else None


async def token_is_read_only() -> bool:
    """Whether nothing can be published with the caller's token; raises as :func:`caller` does."""
    await caller()
    return cast(Identity, g.identity).read_only


async def memberships() -> frozenset[str]:
    """The organisations of the hub that the caller is in; raises as :func:`caller` does.

    Domains of e-mail addresses are among them, which no hub verifies, for accounts of single sign-on alone.
    """
    await caller()
    identity = cast(Identity, g.identity)
    return frozenset(name for name in identity.memberships if not (identity.on_hub and name.startswith("@")))


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


#: The scopes that open the addresses below ``/admin``, by their first segment; any other needs all of them.
SCOPES: Final = {
    **dict.fromkeys(("accounts", "grant", "ban"), Scope.ACCOUNTS),
    **dict.fromkeys(("requests", "refunds", "freeze"), Scope.SIMULATIONS),
    **dict.fromkeys(("benchmark", "challenges", "evaluations", "submissions", "tasks"), Scope.BENCHMARKS),
    **dict.fromkeys(("analytics", "audit", "overview", "usage"), Scope.REPORTS),
}


#: How long groups of single sign-on make an operator: who left one signs in with it no more.
OPERATES: Final = timedelta(hours=12)


async def only_operators() -> None:
    """Admit operators whose scopes open the address, before anything else of a request is read.

    An address that has ``<challenge>`` is open to the organisers of that challenge, too. Raises
    Unauthenticated and Forbidden.
    """
    await find_operator()
    segment = str(request.url_rule).partition("/admin/")[2].partition("/")[0]
    require(SCOPES.get(segment, Scope.ALL), (request.view_args or {}).get("challenge"))


class AuditFields(TypedDict):
    """What the audit log records of a request: its operator and its id."""

    actor: str
    http_request_id: str


def audit_fields() -> AuditFields:
    """Return what the audit log records of this request."""
    return AuditFields(actor=cast(Operator, g.operator).name, http_request_id=str(g.request_id))


async def find_operator() -> Operator:
    """Return the operator of the X-Admin-Token header, read from the database now. Raises Unauthenticated."""
    sent = request.headers.get("X-Admin-Token", "")
    configured = platform().settings.admin_token
    secret = configured.get_secret_value() if configured else ""
    if secret and hmac.compare_digest(sent.encode(), secret.encode()):
        g.operator = operations.FIRST
    else:
        g.operator = await operations.operator_of(sent) or await _operator_by_sign_on(sent)
    if g.operator is None:
        problem = "X-Admin-Token is missing or wrong" if secret else "closed: the server has no ADMIN_TOKEN"
        raise Unauthenticated(problem, challenge="X-Admin-Token")
    return cast(Operator, g.operator)


async def _operator_by_sign_on(token: str) -> Operator | None:
    """Whom groups of single sign-on make an operator, for some hours after each time that they signed in."""
    settings = platform().settings
    account = await sso.account_of(token, settings.oidc_issuer) if settings.oidc_operators else None
    if account is None or account.signed_in_at + OPERATES < now():
        return None
    name = account.hub_username
    operator = operations.operator_by_groups(name, account.groups.split(), settings.oidc_operators)
    return None if operator is None or (await accounts.find(name)).banned else operator


def require(scope: Scope, challenge: str | None = None) -> None:
    """Raise Forbidden unless the request's operator has the scope."""
    operator = cast(Operator, g.operator)
    if not operations.allows(operator, scope, challenge):
        limit = f" for challenge {operator.challenge} alone" if operator.challenge else ""
        raise Forbidden(
            f"this needs the scope {scope}; operator {operator.name} has: {', '.join(operator.scopes)}{limit}"
        )


def is_allowed(scope: Scope) -> bool:
    """Whether the operator who was admitted has a scope for everything, not for one challenge alone."""
    return operations.allows(cast(Operator, g.operator), scope, None)


async def require_metrics_token() -> None:
    """Raise Unauthenticated without the token of ``/metrics``, which that of an operator replaces."""
    configured = platform().settings.metrics_token
    expected = f"Bearer {configured.get_secret_value()}" if configured else ""
    if not expected or not hmac.compare_digest(
        request.headers.get("Authorization", "").encode(), expected.encode()
    ):
        await find_operator()
        require(Scope.REPORTS)
