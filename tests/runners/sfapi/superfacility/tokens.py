"""Access tokens for a signed assertion (``private_key_jwt``, RFC 7523), as the real endpoint issues them."""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

_ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


class InvalidClient(Exception):
    """The assertion proves nothing; the message says why."""


class Tokens:
    """Issues access tokens to one client, who holds the private key in ``key_file``."""

    def __init__(self, client_id: str, key_file: Path, lifetime: float) -> None:
        self.client_id = client_id
        self.lifetime = lifetime
        #: Where tokens are asked for, and so who an assertion must be for; known once the server listens.
        self.audience = ""
        #: All that were issued, the oldest first.
        self.issued: list[str] = []
        self._key = _private_key()
        self._lock = threading.Lock()
        self._valid: dict[str, float] = {}
        self._seen: set[str] = set()
        key_file.touch(mode=0o600)
        key_file.write_bytes(
            self._key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    def issue(self, form: Mapping[str, str]) -> dict[str, object]:
        """The token endpoint's answer; raises InvalidClient."""
        if form.get("grant_type") != "client_credentials":
            raise InvalidClient("grant_type must be client_credentials")
        if form.get("client_assertion_type") != _ASSERTION_TYPE:
            raise InvalidClient(f"client_assertion_type must be {_ASSERTION_TYPE}")
        self._check(self._claims(form.get("client_assertion", "")))
        token = secrets.token_urlsafe(32)
        with self._lock:
            self.issued.append(token)
            self._valid[token] = time.time() + self.lifetime
        return {"access_token": token, "token_type": "Bearer", "expires_in": int(self.lifetime)}

    def valid(self, header: str | None) -> bool:
        """Whether an Authorization header holds a token that was issued and has not expired."""
        scheme, _, token = (header or "").partition(" ")
        with self._lock:
            return scheme.lower() == "bearer" and self._valid.get(token, 0) > time.time()

    def revoke_all(self) -> None:
        """No token that was issued so far is valid any more."""
        with self._lock:
            self._valid.clear()

    def _claims(self, assertion: str) -> dict[str, Any]:
        signed, _, signature = assertion.rpartition(".")
        try:
            header, claims = (json.loads(_decoded(part)) for part in signed.split("."))
            if header["alg"] != "RS256":
                raise InvalidClient(f"assertions are signed by RS256, not {header['alg']}")
            self._key.public_key().verify(
                _decoded(signature), signed.encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except (ValueError, KeyError, TypeError):
            raise InvalidClient("the client assertion cannot be read") from None
        except InvalidSignature:
            raise InvalidClient("the client assertion is signed by another key") from None
        return dict(claims)

    def _check(self, claims: dict[str, Any]) -> None:
        now = time.time()
        if claims.get("iss") != self.client_id or claims.get("sub") != self.client_id:
            raise InvalidClient("the client assertion is another client's")
        if claims.get("aud") != self.audience:
            raise InvalidClient("the client assertion is for another audience")
        if not now < claims.get("exp", 0) <= now + 24 * 3600:
            raise InvalidClient("the client assertion has expired, or never does")
        with self._lock:
            if not claims.get("jti") or claims["jti"] in self._seen:
                raise InvalidClient("the client assertion was used before")
            self._seen.add(claims["jti"])


@cache
def _private_key() -> rsa.RSAPrivateKey:
    """One for all servers of a test run: making one takes as long as a small test."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
