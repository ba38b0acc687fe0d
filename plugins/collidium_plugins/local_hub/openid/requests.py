"""Authorization requests of applications, their validation, and their tickets while the user is asked."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from collidium_plugins.local_hub.accounts import SCOPES, Scopes, read_scopes, write_scopes
from collidium_plugins.local_hub.openid.clients import Client

Parameters = Mapping[str, Sequence[str]]

#: The hub remembers no browser, so that "none" has but one answer.
_PROMPTS: Final = frozenset({"none", "login", "consent", "select_account"})

_STATE: Final = re.compile(r"[\x20-\x7e]{1,2000}")
_NONCE: Final = re.compile(r"[\x20-\x7e]{1,500}")
#: A SHA-256 in base64url without padding.
_CHALLENGE: Final = re.compile(r"[A-Za-z0-9_-]{43}")
#: How long the consent page may stay open.
VALID_SECONDS: Final = 600
_ALGORITHM: Final = "HS256"


class InvalidRedirectURI(Exception):
    """The client or its redirect URI is not known: shown to the user, who is not redirected."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class Refusal(Exception):
    """An error sent to the application by a redirect (RFC 6749, section 4.1.2.1)."""

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


def read_request(sent: Parameters, client: Client, own: str) -> AuthorizationRequest:
    """The request of an address's query; ``own`` is where people reach its pages.

    Raises InvalidRedirectURI for an unknown client or redirect URI, Refusal for anything else that is wrong.
    """
    redirect_uri = check_redirect_uri(_single(sent, "client_id"), _single(sent, "redirect_uri"), client, own)
    state = _single(sent, "state")
    if state is not None and not _STATE.fullmatch(state):
        state = None
    problem = _problem(sent)
    if problem is not None:
        raise Refusal(*problem, redirect_uri, state)
    return AuthorizationRequest(
        client.id,
        redirect_uri,
        read_scopes(_single(sent, "scope") or ""),
        _single(sent, "code_challenge") or "",
        state,
        _single(sent, "nonce"),
    )


def check_redirect_uri(client_id: str | None, redirect_uri: str | None, client: Client, own: str) -> str:
    """The redirect URI, if it is one of the client's; raises InvalidRedirectURI."""
    if client_id != client.id:
        raise InvalidRedirectURI("This hub does not know the application that sent you here.")
    if redirect_uri is None or not client.may_redirect_to(redirect_uri, own):
        raise InvalidRedirectURI(
            "The application wants you to be sent to an address that is not one of its own on this server. "
            "Open its pages under the address that you reach the hub by, and sign in from there."
        )
    return redirect_uri


def with_query(address: str, values: Mapping[str, str | None]) -> str:
    """The address with these values in its query; None is left out."""
    query = urlencode({name: value for name, value in values.items() if value is not None})
    return f"{address}?{query}"


def _problem(sent: Parameters) -> tuple[str, str] | None:
    """The error code of the protocol and a description, if something is wrong."""
    for name, values in sent.items():
        if len(values) > 1:
            shown = name if name.isascii() and name.isidentifier() else "a parameter"
            return "invalid_request", f"{shown} is there more than once"
    for name in ("request", "request_uri"):
        if _single(sent, name) is not None:
            return f"{name}_not_supported", f"This hub takes no {name}"
    if (state := _single(sent, "state")) is not None and not _STATE.fullmatch(state):
        return "invalid_request", "state is printable ASCII, 2000 characters at most"
    return _problem_of_kind(sent) or _problem_of_proof(sent) or _problem_of_prompt(sent)


def _problem_of_kind(sent: Parameters) -> tuple[str, str] | None:
    response_type = _single(sent, "response_type")
    if response_type is None:
        return "invalid_request", "response_type is missing"
    if response_type != "code":
        return "unsupported_response_type", "This hub gives codes alone: response_type=code"
    if _single(sent, "response_mode") not in {None, "query"}:
        return "invalid_request", "This hub answers in the query alone"
    scopes = read_scopes(_single(sent, "scope") or "")
    if not scopes or not scopes <= SCOPES.keys():
        return "invalid_scope", f"scope is some of: {' '.join(SCOPES)}"
    return None


def _problem_of_proof(sent: Parameters) -> tuple[str, str] | None:
    if _single(sent, "code_challenge_method") != "S256":
        return "invalid_request", "PKCE is needed: code_challenge_method=S256"
    if not _CHALLENGE.fullmatch(_single(sent, "code_challenge") or ""):
        return "invalid_request", "PKCE is needed: code_challenge is a SHA-256 in base64url, 43 characters"
    nonce = _single(sent, "nonce")
    if nonce is not None and not _NONCE.fullmatch(nonce):
        return "invalid_request", "nonce is printable ASCII, 500 characters at most"
    return None


def _problem_of_prompt(sent: Parameters) -> tuple[str, str] | None:
    prompts = frozenset((_single(sent, "prompt") or "").split())
    if not prompts <= _PROMPTS or ("none" in prompts and len(prompts) > 1):
        return "invalid_request", "prompt is none, or some of: login consent select_account"
    if "none" in prompts:
        return "login_required", "The user has to be asked"
    return None


def _single(sent: Parameters, name: str) -> str | None:
    """The value of that name; None for none, an empty one (RFC 6749, section 3.1) and several."""
    values = sent.get(name, ())
    return values[0] or None if len(values) == 1 else None


def seal(key: bytes, request: AuthorizationRequest) -> str:
    """The request as a signed text that returns with the user's decision."""
    from joserfc import jwt
    from joserfc.jwk import OctKey

    claims: dict[str, Any] = {
        "client_id": request.client_id,
        "redirect_uri": request.redirect_uri,
        "scope": write_scopes(request.scopes),
        "code_challenge": request.code_challenge,
        "state": request.state,
        "nonce": request.nonce,
        "exp": int(time.time()) + VALID_SECONDS,
    }
    return jwt.encode({"alg": _ALGORITHM}, claims, OctKey.import_key(key), [_ALGORITHM])


def unseal(key: bytes, ticket: str) -> AuthorizationRequest:
    """The request of a ticket; raises InvalidRedirectURI for one that is not of this hub, or too old."""
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import OctKey

    try:
        claims = jwt.decode(ticket, OctKey.import_key(key), [_ALGORITHM]).claims
        jwt.JWTClaimsRegistry(exp={"essential": True}).validate(claims)
    except (JoseError, UnicodeError):
        raise InvalidRedirectURI(
            "This page was open for too long, or was not made by this hub. "
            "Go back to the application and sign in again."
        ) from None
    return AuthorizationRequest(
        claims["client_id"],
        claims["redirect_uri"],
        read_scopes(claims["scope"]),
        claims["code_challenge"],
        claims["state"],
        claims["nonce"],
    )
