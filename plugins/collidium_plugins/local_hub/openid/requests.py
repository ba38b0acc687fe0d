"""The OAuth client, its authorization requests, and the ticket of one whose user is asked for consent.

The only client is the platform's pages.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from collidium.errors import ConfigurationError
from collidium_plugins.local_hub.accounts import SCOPES, Scopes, read_scopes, write_scopes
from collidium_plugins.local_hub.failures import invalid
from collidium_plugins.local_hub.store import sign, verify

if TYPE_CHECKING:
    from collidium.settings import Settings


Parameters = Mapping[str, Sequence[str]]

#: The hub has no sessions, so ``none`` always fails.
_PROMPTS: Final = frozenset({"none", "login", "consent", "select_account"})

_STATE: Final = re.compile(r"[\x20-\x7e]{1,2000}")
_NONCE: Final = re.compile(r"[\x20-\x7e]{1,500}")
#: A SHA-256 in base64url without padding.
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
#: How long the consent page may stay open.
VALID_SECONDS: Final = 600


#: Path of the pages' redirect URI.
CALLBACK: Final = "/web/callback"

_ADDRESS: Final = re.compile(r"(?P<origin>https?://[A-Za-z0-9.:\[\]_-]+)/[A-Za-z0-9./_~%-]*")


@dataclass(frozen=True, slots=True)
class RegisteredClient:
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


def client_of(settings: Settings) -> RegisteredClient:
    """Return the client of the settings; raises ConfigurationError for a malformed redirect URI."""
    for address in settings.oauth_redirect_uris:
        if not _ADDRESS.fullmatch(address):
            raise ConfigurationError(
                f"PLATFORM_OAUTH_REDIRECT_URIS: {address!r} must be like https://pages.example.org{CALLBACK}"
            )
    own = (f"{settings.public_url}{CALLBACK}",) if settings.public_url else ()
    secret = settings.oauth_client_secret
    return RegisteredClient(
        settings.oauth_client_id,
        secret.get_secret_value() if secret else "",
        (*own, *settings.oauth_redirect_uris),
    )


def origin_of(address: str) -> str:
    """Return scheme, host and port of an accepted redirect URI."""
    match = _ADDRESS.fullmatch(address)
    assert match is not None, "only such addresses are accepted"  # noqa: S101 -- for the type checker
    return match["origin"]


class AuthorizationError(Exception):
    """An error response that redirects to the application (RFC 6749, section 4.1.2.1)."""

    def __init__(self, error: str, description: str, redirect_uri: str, state: str | None) -> None:
        super().__init__(description)
        self.address = with_query(
            redirect_uri, {"error": error, "error_description": description, "state": state}
        )


@dataclass(frozen=True, slots=True)
class AuthorizationRequest:
    """A valid authorization request."""

    client_id: str
    redirect_uri: str
    scopes: Scopes
    code_challenge: str
    state: str | None
    nonce: str | None


def read_request(sent: Parameters, client: RegisteredClient, own: str) -> AuthorizationRequest:
    """Parse and validate the query of an authorization request.

    ``own`` is the address of the server's pages, without a slash at the end. Raises HubError for an unknown
    client or redirect URI, where the user must not be redirected, and AuthorizationError otherwise.
    """
    redirect_uri = check_redirect_uri(_single(sent, "client_id"), _single(sent, "redirect_uri"), client, own)
    state = _single(sent, "state")
    if state is not None and not _STATE.fullmatch(state):
        state = None
    problem = _problem(sent)
    if problem is not None:
        raise AuthorizationError(*problem, redirect_uri, state)
    return AuthorizationRequest(
        client.id,
        redirect_uri,
        read_scopes(_single(sent, "scope") or ""),
        _single(sent, "code_challenge") or "",
        state,
        _single(sent, "nonce"),
    )


def check_redirect_uri(
    client_id: str | None, redirect_uri: str | None, client: RegisteredClient, own: str
) -> str:
    """Return the redirect URI if it is one of the client's; raises HubError."""
    if client_id != client.id:
        raise invalid("This hub does not know the application that sent you here.")
    if redirect_uri is None or not client.may_redirect_to(redirect_uri, own):
        raise invalid(
            "The application wants you to be sent to an address that is not one of its own on this server. "
            "Open its pages under the address that you reach the hub by, and sign in from there."
        )
    return redirect_uri


def with_query(address: str, values: Mapping[str, str | None]) -> str:
    """Add a query to an address; None values are left out."""
    query = urlencode({name: value for name, value in values.items() if value is not None})
    return f"{address}?{query}"


def _problem(sent: Parameters) -> tuple[str, str] | None:
    """Return the OAuth error code and a description if the request is invalid."""
    for name, values in sent.items():
        if len(values) > 1:
            shown = name if name.isascii() and name.isidentifier() else "a parameter"
            return "invalid_request", f"{shown} is given more than once"
    for name in ("request", "request_uri"):
        if _single(sent, name) is not None:
            return f"{name}_not_supported", f"This hub does not support {name}"
    if (state := _single(sent, "state")) is not None and not _STATE.fullmatch(state):
        return "invalid_request", "state must be printable ASCII of at most 2000 characters"
    return _type_problem(sent) or _pkce_problem(sent) or _prompt_problem(sent)


def _type_problem(sent: Parameters) -> tuple[str, str] | None:
    response_type = _single(sent, "response_type")
    if response_type is None:
        return "invalid_request", "response_type is missing"
    if response_type != "code":
        return "unsupported_response_type", "This hub only supports response_type=code"
    if _single(sent, "response_mode") not in {None, "query"}:
        return "invalid_request", "This hub only supports response_mode=query"
    scopes = read_scopes(_single(sent, "scope") or "")
    if not scopes or not scopes <= SCOPES.keys():
        return "invalid_scope", f"scope must be a list of: {' '.join(SCOPES)}"
    return None


def _pkce_problem(sent: Parameters) -> tuple[str, str] | None:
    if _single(sent, "code_challenge_method") != "S256":
        return "invalid_request", "PKCE is required: code_challenge_method=S256"
    if not _CHALLENGE.fullmatch(_single(sent, "code_challenge") or ""):
        return "invalid_request", "PKCE is required: code_challenge is a SHA-256 in base64url, 43 characters"
    nonce = _single(sent, "nonce")
    if nonce is not None and not _NONCE.fullmatch(nonce):
        return "invalid_request", "nonce must be printable ASCII of at most 500 characters"
    return None


def _prompt_problem(sent: Parameters) -> tuple[str, str] | None:
    prompts = frozenset((_single(sent, "prompt") or "").split())
    if not prompts <= _PROMPTS or ("none" in prompts and len(prompts) > 1):
        return "invalid_request", "prompt must be none, or a list of: login consent select_account"
    if "none" in prompts:
        return "login_required", "The user has to sign in"
    return None


def _single(sent: Parameters, name: str) -> str | None:
    """Return a parameter's value; None if it is missing, empty (RFC 6749, section 3.1) or repeated."""
    values = sent.get(name, ())
    return values[0] or None if len(values) == 1 else None


def seal(key: bytes, request: AuthorizationRequest) -> str:
    """Return the request as a signed ticket, which comes back with the user's decision."""
    return sign(key, asdict(request) | {"scopes": write_scopes(request.scopes)}, VALID_SECONDS)


def unseal(key: bytes, ticket: str) -> AuthorizationRequest:
    """Return the request of a ticket; raises HubError if it is forged or has expired."""
    claims = verify(key, ticket)
    if claims is None or "scopes" not in claims:  # tickets of older releases had other fields
        raise invalid(
            "This page was open for too long, or was not made by this hub. "
            "Go back to the application and sign in again."
        )
    fields: dict[str, Any] = {**claims, "scopes": read_scopes(claims["scopes"])}
    return AuthorizationRequest(**fields)
