"""Who the caller is, and what applications ask the hub as an OpenID provider besides tokens."""

from __future__ import annotations

from quart import Response

from collidium_plugins.local_hub.accounts import SCOPES
from collidium_plugins.local_hub.documents import account_document
from collidium_plugins.local_hub.failures import not_signed_in
from collidium_plugins.local_hub.openid.keys import ALGORITHM, about, public_keys
from collidium_plugins.local_hub.web.context import (
    base_url,
    caller,
    hub,
    in_thread,
    json_response,
)


async def configuration() -> Response:
    """``GET /.well-known/openid-configuration`` (OpenID Connect Discovery, section 3)"""
    at = base_url()
    methods = ["client_secret_basic", "client_secret_post"] if hub().client.secret else ["none"]
    document = {
        "issuer": at,
        "authorization_endpoint": f"{at}/oauth/authorize",
        "token_endpoint": f"{at}/oauth/token",
        "userinfo_endpoint": f"{at}/oauth/userinfo",
        "jwks_uri": f"{at}/oauth/jwks",
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
    # Among the writers: the first who asks makes the key.
    return json_response(await in_thread(hub().writers, public_keys, hub().store.database))


async def userinfo() -> Response:
    """``GET`` and ``POST /oauth/userinfo`` (OpenID Connect Core, section 5.3)"""
    account = caller()
    if account is None:
        return _challenge(401, "")
    if not account.may("openid"):
        return _challenge(403, ', error="insufficient_scope", scope="openid"')
    claims = about(account, account.scopes)
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
    response = json_response({"error": "A token with the scope openid is needed"}, status)
    response.headers["WWW-Authenticate"] = f'Bearer realm="hub"{error}'
    return response
