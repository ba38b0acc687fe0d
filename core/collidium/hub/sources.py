"""Resolves the source of a dataset: a directory, or a repository on a hub with the token to read it.

The hub is that of the argument, else ``PLATFORM_HUB_URL``, else ``HF_ENDPOINT``, else the local hub of the
server ``PLATFORM_BACKEND``. The token is that of the argument, else ``HF_TOKEN``, else the one saved by
``collidium login`` for that server or by ``hf auth login`` for huggingface.co. If only the address of a
repository names a hub, no token is sent to it but that of the argument.

Tokens are saved per backend, so that none is sent to another server.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from collidium.contracts.identity import OWN_PREFIX
from collidium.errors import ConfigurationError, InvalidInput
from collidium.files import durable

#: The server if none is configured.
DEFAULT_BACKEND: Final = "http://127.0.0.1:8000"

#: The hub for which ``hf auth login`` saves a token.
PUBLIC_HUB: Final = "https://huggingface.co"

_REPO: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


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
    """Return the secret if a header can hold it. Raises ConfigurationError, which does not show it."""
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ConfigurationError(f"{name} is invalid: it holds characters that no token has")
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


@dataclass(frozen=True, slots=True)
class HubDataset:
    """A dataset repository, ``namespace/name``, on the hub at ``endpoint``."""

    repo: str
    endpoint: str
    revision: str = "main"
    token: str | None = field(default=None, repr=False)

    @property
    def page(self) -> str:
        """The URL of the repository's page."""
        return f"{self.endpoint}/datasets/{self.repo}"


@dataclass(frozen=True, slots=True)
class HubAccess:
    """A hub, and the token to send."""

    endpoint: str
    token: str | None = field(repr=False)


def find_hub(endpoint: str | None = None, token: str | None = None) -> HubAccess:
    """Return the hub and token to use, as this module describes; an empty ``token`` sends none.

    Raises ConfigurationError for a malformed address.
    """
    hub = _endpoint(endpoint)
    return HubAccess(hub, _token_for(hub) if token is None else token.strip() or None)


def locate(
    source: str | Path | HubDataset,
    *,
    endpoint: str | None = None,
    revision: str | None = None,
    token: str | None = None,
) -> Path | HubDataset:
    """Resolve ``source``: a directory, ``NAMESPACE/NAME`` on the hub, or the URL of a repository.

    Raises InvalidInput for anything else, and ConfigurationError for a malformed address of a hub.
    """
    if isinstance(source, HubDataset):
        return source
    if isinstance(source, str) and source.startswith(("http://", "https://")):
        return _by_address(source, endpoint, revision, token)
    directory = Path(source).expanduser()
    if source != "" and directory.is_dir():
        return directory
    if isinstance(source, Path) or not _REPO.fullmatch(source):
        raise InvalidInput(
            f"{source}: neither an existing directory, nor a hub repository NAMESPACE/NAME or its address"
        )
    hub = find_hub(endpoint, token)
    return HubDataset(source, hub.endpoint, revision or "main", hub.token)


def _by_address(source: str, endpoint: str | None, revision: str | None, token: str | None) -> HubDataset:
    """``https://hub.example/datasets/alice/events[/tree/v1]``."""
    address, _, rest = source.partition("/datasets/")
    namespace, name, *more = [*rest.split("/"), ""]
    at = check_endpoint(address, "the address of a repository")
    if not _REPO.fullmatch(f"{namespace}/{name}"):
        raise InvalidInput(f"{source}: the address of a dataset must end with /datasets/NAMESPACE/NAME")
    chosen = _endpoint(endpoint)
    if endpoint is not None and at != chosen:
        raise InvalidInput(f"{source} is not on the hub {chosen}")
    if token is None and at == chosen:
        token = _token_for(at)
    if revision is None and more[:1] in (["tree"], ["resolve"], ["blob"]) and len(more) > 1:
        revision = unquote(more[1])
    return HubDataset(f"{namespace}/{name}", at, revision or "main", (token or "").strip() or None)


def check_endpoint(address: str, name: str) -> str:
    """Return the normalized address of a hub. Raises ConfigurationError with the setting's ``name``."""
    try:
        parts = urlsplit(address.strip())
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, valid = urlsplit(""), False
    if not valid or parts.query or parts.fragment:
        raise ConfigurationError(f"{name} must be like {PUBLIC_HUB}")
    if parts.username is not None or parts.password is not None:
        # Messages show the address, and would show a password in it.
        raise ConfigurationError(f"{name} must not contain a user name or a password")
    return address.strip().rstrip("/")


def _endpoint(given: str | None) -> str:
    if given is not None:
        return check_endpoint(given, "the hub's address")
    for name in ("PLATFORM_HUB_URL", "HF_ENDPOINT"):
        if address := os.environ.get(name):
            if name == "PLATFORM_HUB_URL" and address == "local":  # also a value of the server's setting
                break
            return check_endpoint(address, name)
    return f"{_backend()}/hub"


def _backend() -> str:
    return check_endpoint(os.environ.get("PLATFORM_BACKEND") or DEFAULT_BACKEND, "PLATFORM_BACKEND")


def _token_for(endpoint: str) -> str | None:
    """The token for this hub from the environment or a saved login."""
    token = os.environ.get("HF_TOKEN") or ""
    if not token and endpoint == f"{_backend()}/hub":
        token = saved_token(_backend()) or ""
    if not token and endpoint == PUBLIC_HUB:
        from huggingface_hub import get_token

        token = get_token() or ""
    # The platform's own tokens are not valid on a hub; public data needs none.
    return token.strip() or None if not token.startswith(OWN_PREFIX) else None
