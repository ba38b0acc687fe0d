"""Authentication of requests: bearer tokens of accounts, browser sessions, and operators' tokens."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypedDict, TypeVar, cast

from quart import g, request
from quart_schema import security_scheme
from tortoise.timezone import now

from collidium import accounts, operations
from collidium.accounts import AccountView, sso
from collidium.api import browsers
from collidium.api.context import caller_address, platform
from collidium.contracts.identity import Identity
from collidium.errors import Forbidden, Unauthenticated
from collidium.operations import Scope
from collidium.records import Operator
from collidium.runtime import logs
from collidium.sessions import Session
from collidium.submissions import reading, submit

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Caller:
    """The account that makes a request, and what its token shows."""

    account: AccountView
    identity: Identity
    token: str = field(repr=False)

    @property
    def hub_token(self) -> str | None:
        """The token, if it is one of the hub."""
        return self.token if self.identity.on_hub else None

    @property
    def memberships(self) -> frozenset[str]:
        """The organisations on the hub.

        E-mail domains are included only for accounts of single sign-on, because hubs do not verify them.
        """
        on_hub = self.identity.on_hub
        return frozenset(name for name in self.identity.memberships if not (on_hub and name.startswith("@")))

    async def check_claim(self, model_repo: str) -> reading.Claim | None:
        """Check the claim to a model repository with the token; None if the hub is unavailable."""
        return await submit.check_claim(platform().identities, self.identity, self.token, model_repo)


def signed_in(handler: Callable[Concatenate[Caller, P], Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """Give a handler its caller, authenticated before the request is read; above decorators that validate.

    It also documents the requirement in the OpenAPI document.
    """

    @security_scheme([{"hub_token": []}])
    @wraps(handler)
    async def only_accounts(*arguments: P.args, **options: P.kwargs) -> T:
        return await handler(await _caller(), *arguments, **options)

    return only_accounts


async def _caller() -> Caller:
    """Return who owns the request's token or session; an Authorization header takes precedence.

    Raises Unauthenticated without a valid token, TooManyRequests after too many unknown ones, Forbidden for a
    banned account or a cross-site request, and :class:`~collidium.contracts.identity.IdentityUnavailable` if
    tokens cannot be validated now.
    """
    session = None if "Authorization" in request.headers else await _session()
    token = session.token if session else _bearer_token()
    address = caller_address(platform().settings.trusted_proxies)
    identity = await platform().identities.identify(token, address)
    if identity is None:
        if session is None:
            raise Unauthenticated("the token is not valid", challenge='Bearer error="invalid_token"')
        await platform().sessions.end(session.key)
        raise Unauthenticated(browsers.ENDED)
    logs.account.set(identity.username)
    account = await accounts.recognise(identity.username, signup_grant=platform().settings.signup_grant)
    g.is_private = True  # the response, also that of an error, is for this account alone
    return Caller(account, identity, token)


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


class AuditFields(TypedDict):
    """What the audit log records of a request: its operator and its id."""

    actor: str
    http_request_id: str


@dataclass(frozen=True, slots=True)
class OperatorCaller:
    """The operator that makes a request."""

    operator: Operator

    @property
    def audit(self) -> AuditFields:
        """What the audit log records of the request."""
        return AuditFields(actor=self.operator.name, http_request_id=str(g.request_id))

    def may(self, scope: Scope, challenge: str | None = None) -> bool:
        """Whether the operator has a scope for a challenge, by default for all of them."""
        return operations.allows(self.operator, scope, challenge)

    def require(self, scope: Scope, challenge: str | None = None) -> None:
        """Raise Forbidden unless the operator has the scope."""
        if not self.may(scope, challenge):
            name, own = self.operator.name, self.operator.challenge
            limit = f" for challenge {own} alone" if own else ""
            scopes = ", ".join(self.operator.scopes)
            raise Forbidden(f"this needs the scope {scope}; operator {name} has: {scopes}{limit}")


async def only_operators() -> None:
    """Admit operators whose scopes include the path, before the request is read.

    Paths with ``<challenge>`` are also open to the organisers of that challenge. Raises Unauthenticated and
    Forbidden.
    """
    g.operator = await find_operator()
    g.operator.require(scope_of(str(request.url_rule)), (request.view_args or {}).get("challenge"))


def scope_of(rule: str) -> Scope:
    """Return the scope that a path below ``/admin`` requires."""
    return SCOPES.get(rule.partition("/admin/")[2].partition("/")[0], Scope.ALL)


def by_operator(
    handler: Callable[Concatenate[OperatorCaller, P], Awaitable[T]],
) -> Callable[P, Awaitable[T]]:
    """Give a handler below ``/admin`` the operator that :func:`only_operators` admitted."""

    @wraps(handler)
    async def operated(*arguments: P.args, **options: P.kwargs) -> T:
        return await handler(cast(OperatorCaller, g.operator), *arguments, **options)

    return operated


async def find_operator() -> OperatorCaller:
    """Return the operator of the X-Admin-Token header, read from the database now. Raises Unauthenticated."""
    sent = request.headers.get("X-Admin-Token", "")
    configured = platform().settings.admin_token
    secret = configured.get_secret_value() if configured else ""
    if secret and hmac.compare_digest(sent.encode(), secret.encode()):
        return OperatorCaller(operations.FIRST_OPERATOR)
    operator = await operations.operator_of(sent) or await _operator_by_sign_on(sent)
    if operator is None:
        problem = "X-Admin-Token is missing or wrong" if secret else "closed: the server has no ADMIN_TOKEN"
        raise Unauthenticated(problem, challenge="X-Admin-Token")
    return OperatorCaller(operator)


async def _operator_by_sign_on(token: str) -> Operator | None:
    """Return the operator that a token's groups of single sign-on define, for hours after a sign-in."""
    settings = platform().settings
    account = await sso.account_of(token, settings.oidc_issuer) if settings.oidc_operators else None
    if account is None or account.signed_in_at + GROUPS_VALID_FOR < now():
        return None
    name = account.hub_username
    operator = operations.operator_by_groups(name, account.groups.split(), settings.oidc_operators)
    return None if operator is None or (await accounts.find(name)).banned else operator


async def require_metrics_token() -> None:
    """Raise Unauthenticated unless the request has the token of ``/metrics`` or that of an operator."""
    configured = platform().settings.metrics_token
    expected = f"Bearer {configured.get_secret_value()}" if configured else ""
    if not expected or not hmac.compare_digest(
        request.headers.get("Authorization", "").encode(), expected.encode()
    ):
        (await find_operator()).require(Scope.REPORTS)
