"""Who a token of a hub belongs to, by the response to ``GET /api/whoami-v2``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from collidium.contracts.identity import USERNAME, Identity


def token_owner(content: bytes) -> Identity | None:
    """The account of a token, by the body of a whoami response; None for an organisation's token.

    Raises ValueError that says what is wrong with the response.
    """
    try:
        document: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise ValueError("is not JSON") from None
    name = document.get("name") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise ValueError("has no usable name")
    try:
        owner = Identity(
            name, read_only=_role(document) == "read", organisations=frozenset(_organisations(document))
        )
    except ValueError:
        raise ValueError("has no usable name") from None
    # An organisation's token belongs to no single account.
    return owner if document.get("type", "user") == "user" else None


def _organisations(document: dict[str, Any]) -> Iterator[str]:
    """Names of the organisations that the token shows, but for those where the account may only read.

    What is no name is left out.
    """
    listed = document.get("orgs")
    for item in listed if isinstance(listed, list) else ():
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and USERNAME.fullmatch(name) and item.get("roleInOrg") != "read":
            yield name


def _role(document: dict[str, Any]) -> object:
    """The token's role if the hub reports one: fine-grained tokens may or may not write."""
    auth = document.get("auth")
    token = auth.get("accessToken") if isinstance(auth, dict) else None
    return token.get("role") if isinstance(token, dict) else None
