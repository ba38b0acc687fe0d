"""``HF_HUB_OFFLINE``: whether this process may call a hub.

It holds for clients. A server's hub is a setting, as is that of the demo and of `collidium seed`: they
:func:`ignore` it.
"""

from __future__ import annotations

import os
from typing import Final

from collidium.errors import ConfigurationError
from collidium.overrides import huggingface_hub

NAME: Final = "HF_HUB_OFFLINE"
_TRUE: Final = frozenset({"1", "true", "yes", "on"})


def is_offline() -> bool:
    """Whether the environment forbids calls of a hub, by the rule of ``huggingface_hub``."""
    return os.environ.get(NAME, "").strip().lower() in _TRUE


def require_online(action: str) -> None:
    """Raise ConfigurationError if the environment forbids calls of a hub, which ``action`` needs."""
    if is_offline():
        raise ConfigurationError(f"{action} needs the hub, and {NAME} forbids calls of it: unset {NAME}")


def ignore() -> None:
    """Allow calls in this process and the processes that it starts."""
    os.environ[NAME] = "0"
    huggingface_hub.go_online()
