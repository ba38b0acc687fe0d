"""Endpoints of the OpenID provider: discovery, tokens, keys and user info; and whoami."""

from __future__ import annotations

import base64
import re
import sqlite3
from binascii import Error as NotBase64
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import unquote_plus

from quart import Response, request

from collidium_plugins.local_hub.accounts import SCOPES, write_scopes
from collidium_plugins.local_hub.documents import account_document
from collidium_plugins.local_hub.failures import HubFailure, not_signed_in
from collidium_plugins.local_hub.openid.grants import (
    ACCESS_SECONDS,
    ALGORITHM,
    Grant,
    SingleUseToken,
    Tokens,
    id_token,
    issue,
    public_keys,
    redeem,
    signing_key,
    user_claims,
)
from collidium_plugins.local_hub.web.context import (
    base_url,
    caller,
    hub,
    in_thread,
    json_response,
    sent_form,
    writing,
)

#: RFC 7636, section 4.1.
_VERIFIER: Final = re.compile(r"[A-Za-z0-9._~-]{43,128}")


class TokenError(Exception):
    """An error response of the token endpoint (RFC 6749, section 5.2)."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(description)
        self.error = error
        self.description = description


async def token() -> Response:
    """``POST /oauth/token``"""
    try:
        response = json_response(await _tokens())
    except TokenError as error:
        response = _error_response(error)
    response.headers.update({"Cache-Control": "no-store", "Pragma": "no-cache"})
    return response


async def _tokens() -> dict[str, Any]:
    try:
        form = await sent_form()
    except HubFailure as error:
        raise TokenError("invalid_request", error.message) from None
    _authenticate(form)
    kind = _needed(form, "grant_type")
    if kind == "authorization_code":
        return await _for_code(form)
    if kind == "refresh_token":
        return await _for_refresh_token(form)
    raise TokenError("unsupported_grant_type", "grant_type is authorization_code or refresh_token")


async def _for_code(form: dict[str, str]) -> dict[str, Any]:
    code, redirect_uri = _needed(form, "code"), _needed(form, "redirect_uri")
    verifier = _needed(form, "code_verifier")
    if not _VERIFIER.fullmatch(verifier):
        raise TokenError("invalid_request", "code_verifier must be 43 to 128 of A-Z a-z 0-9 - . _ ~")
    name = hub().client.id
    grant, tokens = await _exchange("code", code, lambda made: made.is_of(name, redirect_uri, verifier))
    document = _document(tokens)
    if "openid" in grant.scopes:
        document["id_token"] = await in_thread(hub().writers, _signed, base_url(), grant, tokens)
    return document


async def _for_refresh_token(form: dict[str, str]) -> dict[str, Any]:
    # The parameter scope is ignored: the response lists the scopes of the grant (section 3.3).
    name = hub().client.id
    _, tokens = await _exchange(
        "refresh", _needed(form, "refresh_token"), lambda made: made.client_id == name
    )
    return _document(tokens)


async def _exchange(kind: str, text: str, is_valid: Callable[[SingleUseToken], bool]) -> tuple[Grant, Tokens]:
    def work(db: sqlite3.Connection) -> tuple[Grant, Tokens] | None:
        grant = redeem(db, kind, text, is_valid)
        return (grant, issue(db, grant)) if grant else None

    # Raised outside the transaction, which must be committed: redeem() deletes the grant of a stolen code.
    given = await writing(work)
    if given is None:
        raise TokenError(
            "invalid_grant", "The code or token was used before, has expired, or belongs to another request"
        )
    return given


def _signed(issuer: str, grant: Grant, tokens: Tokens) -> str:
    return id_token(signing_key(hub().store.database), issuer, grant, tokens.access)


def _document(tokens: Tokens) -> dict[str, Any]:
    return {
        "access_token": tokens.access,
        "token_type": "bearer",
        "expires_in": ACCESS_SECONDS,
        "refresh_token": tokens.refresh,
        "scope": write_scopes(tokens.scopes),
    }


# -- the application ---------------------------------------------------------------------------------------


def _authenticate(form: dict[str, str]) -> None:
    """Authenticate the client (section 2.3.1). A public one sends its id without a secret."""
    header = request.headers.get("Authorization", "")
    if header and "client_secret" in form:
        raise TokenError("invalid_request", "The client must authenticate by one method, not by two")
    given = _basic(header) if header else (_needed(form, "client_id"), form.get("client_secret", ""))
    if given is None or not hub().client.has_credentials(*given):
        raise TokenError("invalid_client", "Unknown client, or wrong secret")
    if form.get("client_id", hub().client.id) != hub().client.id:
        raise TokenError("invalid_request", "client_id differs from the Authorization header")


def _basic(header: str) -> tuple[str, str] | None:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (NotBase64, ValueError):
        return None
    return (unquote_plus(name), unquote_plus(secret)) if colon else None


def _needed(form: dict[str, str], name: str) -> str:
    if not form.get(name):
        raise TokenError("invalid_request", f"{name} is missing")
    return form[name]


def _error_response(error: TokenError) -> Response:
    document = {"error": error.error, "error_description": error.description}
    unknown = error.error == "invalid_client"
    response = json_response(document, 401 if unknown else 400)
    if unknown:
        response.headers["WWW-Authenticate"] = 'Basic realm="hub"'
    return response


async def configuration() -> Response:
    """``GET /.well-known/openid-configuration`` (OpenID Connect Discovery, section 3)"""
    issuer = base_url()
    methods = ["client_secret_basic", "client_secret_post"] if hub().client.secret else ["none"]
    document = {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/oauth/authorize",
        "token_endpoint": f"{issuer}/oauth/token",
        "userinfo_endpoint": f"{issuer}/oauth/userinfo",
        "jwks_uri": f"{issuer}/oauth/jwks",
        "scopes_supported": list(SCOPES),
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": methods,
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
        "claims_supported": [
            "sub", "iss", "aud", "exp", "iat", "auth_time", "nonce", "at_hash", "name", "preferred_username",
            "email", "email_verified",
        ],
        "request_parameter_supported": False,
        "request_uri_parameter_supported": False,
    }  # fmt: skip
    return json_response(document)


async def jwks() -> Response:
    """``GET /oauth/jwks``"""
    # In a writers' thread, as the first call makes the key.
    return json_response(await in_thread(hub().writers, public_keys, hub().store.database))


async def userinfo() -> Response:
    """``GET`` and ``POST /oauth/userinfo`` (OpenID Connect Core, section 5.3)"""
    account = caller()
    if account is None:
        return _challenge(401, "")
    if not account.may("openid"):
        return _challenge(403, ', error="insufficient_scope", scope="openid"')
    claims = user_claims(account, account.scopes)
    response = json_response(claims | {"orgs": []})
    response.headers["Cache-Control"] = "no-store"
    return response


async def whoami() -> Response:
    """``GET /api/whoami-v2``"""
    account = caller()
    if account is None:
        raise not_signed_in()
    return json_response(account_document(account))


def _challenge(status: int, error: str) -> Response:
    response = json_response({"error": "A token with the scope openid is required"}, status)
    response.headers["WWW-Authenticate"] = f'Bearer realm="hub"{error}'
    return response
