"""The saved login: one token for each backend, so that none is ever sent to another server."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

from collidium.errors import ConfigurationError
from collidium.files import durable

#: The server of who names none.
DEFAULT_BACKEND: Final = "http://127.0.0.1:8000"


def login_file() -> Path:
    """Return the file of tokens, which only its owner may read.

    Returns
    -------
    pathlib.Path
        ``collidium/login.json`` below ``XDG_CONFIG_HOME``, or below ``~/.config``.
    """
    base = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(base) / "collidium" / "login.json"


def saved_token(backend: str) -> str | None:
    """Return the token saved for a backend.

    Parameters
    ----------
    backend : str
        Address of the server.

    Returns
    -------
    str or None
        None if no token is saved for it.

    Raises
    ------
    ConfigurationError
        If the file of tokens cannot be read.
    """
    token = _read().get(backend)
    return token if isinstance(token, str) else None


def save_token(backend: str, token: str) -> Path:
    """Save the token for a backend, in place of an older one.

    Parameters
    ----------
    backend : str
        Address of the server.
    token : str

    Returns
    -------
    pathlib.Path
        The file of tokens.

    Raises
    ------
    ConfigurationError
        If the file of tokens cannot be read.
    """
    path = login_file()
    tokens = {**_read(), backend: token}
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    durable.replace(path, json.dumps(tokens, indent=2), mode=0o600)
    return path


def forget_token(backend: str) -> bool:
    """Delete the token saved for a backend.

    Parameters
    ----------
    backend : str
        Address of the server.

    Returns
    -------
    bool
        Whether there was one.

    Raises
    ------
    ConfigurationError
        If the file of tokens cannot be read.
    """
    tokens = _read()
    if tokens.pop(backend, None) is None:
        return False
    durable.replace(login_file(), json.dumps(tokens, indent=2), mode=0o600)
    return True


def sendable(secret: str, name: str) -> str:
    """The secret, if it can travel in a header. Raises ConfigurationError that does not show it."""
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ConfigurationError(f"{name} is not one: it holds characters that no token has")
    return secret


def _read() -> dict[str, object]:
    path = login_file()
    try:
        tokens = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        tokens = None
    if not isinstance(tokens, dict):
        raise ConfigurationError(f"the saved login in {path} cannot be read; delete it and log in again")
    return tokens
