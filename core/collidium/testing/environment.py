"""The environment of a test: nothing of the caller's settings, tokens and caches gets in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: Settings, tokens and caches of the person who runs the tests.
_PRIVATE_PREFIXES = ("PLATFORM_", "HF_", "HUGGING", "XDG_", "COLLIDERML_", "PG")
_PRIVATE_NAMES = frozenset({"ADMIN_TOKEN"})
#: Loopback never goes through the caller's proxy.
_LOOPBACK = "127.0.0.1,localhost,::1"


def is_private(name: str) -> bool:
    """Whether the environment variable may carry the caller's own settings into a test."""
    upper = name.upper()
    return upper in _PRIVATE_NAMES or upper.startswith(_PRIVATE_PREFIXES)


def isolated_environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The caller's environment without anything private, with its home in ``home``, plus ``extra``."""
    kept = {name: value for name, value in os.environ.items() if not is_private(name)}
    return kept | {
        "HOME": str(home),
        "HF_HOME": str(home / "huggingface"),
        "NO_PROXY": _LOOPBACK,
        "no_proxy": _LOOPBACK,
        **(extra or {}),
    }
