"""The random keys that browsers hold, and what follows from them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from typing import Final

#: 256 bits, as 43 characters that may stand in cookies and addresses.
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{43}")


def new_key() -> str:
    """A key that nobody can guess."""
    return secrets.token_urlsafe(32)


def is_key(text: str) -> bool:
    """Whether it could be a key of ours."""
    return _KEY.fullmatch(text) is not None


def digest(key: str) -> str:
    """What is kept of a key: enough to recognise it, not enough to be taken for its holder."""
    return hashlib.sha256(key.encode()).hexdigest()


def derived(key: str, purpose: str) -> str:
    """Another key for one purpose, which tells nothing of this one (HMAC-SHA256).

    43 characters of base64url, which is also what RFC 7636 asks of a code verifier.
    """
    mac = hmac.digest(key.encode(), purpose.encode(), "sha256")
    return base64.urlsafe_b64encode(mac).rstrip(b"=").decode("ascii")
