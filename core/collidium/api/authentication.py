"""Authentication of requests: bearer tokens of accounts, browser sessions, and operators' tokens."""

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
from collidium.benchmarks.submissions import reading, submitting
from collidium.contracts.identity import Identity
from collidium.errors import Forbidden, Unauthenticated
from collidium.operations import Scope
from collidium.records import Operator
from collidium.runtime import logs
from collidium.sessions import Session

P = ParamSpec("P")
T = TypeVar("T")


async def caller() -> AccountView:
    """Return the account of the request's token or session; an Authorization header takes precedence.

    Raises Unauthenticated without a valid token, TooManyRequests after too many unknown ones, Forbidden for a
    banned account or a cross-site request, and :class:`~collidium.contracts.identity.IdentityUnavailable` if
    tokens cannot be validated now.
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
    """Return the caller's hub token, or None for accounts without one; raises as :func:`caller` does."""
    await caller()
    return cast(str, g.token) if cast(Identity, g.identity).on_hub else None


async def token_is_read_only() -> bool:
    """Whether the caller's token cannot publish; raises as :func:`caller` does."""
    await caller()
    return cast(Identity, g.identity).read_only


async def memberships() -> frozenset[str]:
    """Return the caller's organisations on the hub; raises as :func:`caller` does.

    E-mail domains are included only for accounts of single sign-on, because hubs do not verify them.
    """
    await caller()
    identity = cast(Identity, g.identity)
    return frozenset(name for name in identity.memberships if not (identity.on_hub and name.startswith("@")))


async def check_claim(model_repo: str) -> reading.Claim | None:
    """Check the caller's claim to a model repository with its token; None if the hub is unavailable."""
    await caller()
    return await submitting.check_claim(platform().identities, g.identity, g.token, model_repo)


def signed_in(handler: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Authenticate the caller before the request is read; place it above decorators that validate.

    It also documents the requirement in the OpenAPI document.
    """

    @security_scheme([{"hub_token": []}])
    @wraps(handler)
    async def only_accounts(*arguments: P.args, **options: P.kwargs) -> T:
        await caller()
        return await handler(*arguments, **options)

    return only_accounts


async def _session() -> Session | None:
    """Return the session of a browser's request to ``/v1``, or None without a cookie.

    Requests that change something must prove that they come from one of our pages, before any database
    access.
    """
    settings = platform().settings
    key = browsers.read_cookie(settings, browsers.SESSION)
    if not key or not request.path.startswith("/v1/"):
        return None
    if request.method in browsers.SAFE:
        if browsers.is_from_another_site():
            return None
    else:
        browsers.require_own_origin(browsers.origin(settings))
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


#: Scopes of paths below ``/admin`` by their first segment; others require the scope ``all``.
SCOPES: Final = {
    **dict.fromkeys(("accounts", "grant", "ban"), Scope.ACCOUNTS),
    **dict.fromkeys(("requests", "refunds", "freeze"), Scope.SIMULATIONS),
    **dict.fromkeys(("benchmark", "challenges", "evaluations", "submissions", "tasks"), Scope.BENCHMARKS),
    **dict.fromkeys(("analytics", "audit", "overview", "usage"), Scope.REPORTS),
}


#: How long after a sign-in groups make an operator, so that removed members lose access.
GROUPS_VALID_FOR: Final = timedelta(hours=12)


async def only_operators() -> None:
    """Admit operators whose scopes include the path, before the request is read.

    Paths with ``<challenge>`` are also open to the organisers of that challenge. Raises Unauthenticated and
    Forbidden.
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
        g.operator = operations.FIRST_OPERATOR
    else:
        g.operator = await operations.operator_of(sent) or await _operator_by_sign_on(sent)
    if g.operator is None:
        problem = "X-Admin-Token is missing or wrong" if secret else "closed: the server has no ADMIN_TOKEN"
        raise Unauthenticated(problem, challenge="X-Admin-Token")
    return cast(Operator, g.operator)


async def _operator_by_sign_on(token: str) -> Operator | None:
    """Return the operator that a token's groups of single sign-on define, for hours after a sign-in."""
    settings = platform().settings
    account = await sso.account_of(token, settings.oidc_issuer) if settings.oidc_operators else None
    if account is None or account.signed_in_at + GROUPS_VALID_FOR < now():
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
    """Whether the request's operator has a scope for all challenges."""
    return operations.allows(cast(Operator, g.operator), scope, None)


async def require_metrics_token() -> None:
    """Raise Unauthenticated unless the request has the token of ``/metrics`` or that of an operator."""
    configured = platform().settings.metrics_token
    expected = f"Bearer {configured.get_secret_value()}" if configured else ""
    if not expected or not hmac.compare_digest(
        request.headers.get("Authorization", "").encode(), expected.encode()
    ):
        await find_operator()
        require(Scope.REPORTS)
