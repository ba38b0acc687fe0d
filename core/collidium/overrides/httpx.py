"""httpx, and httpx2 of huggingface_hub: network backends of a client, and an import without the command.

- A client has no parameter for network backends, which look names up and connect
  (https://github.com/encode/httpx/pull/3749, open). A transport of our own would repeat how httpx maps
  requests, responses, errors and proxies to httpcore.
- ``import httpx`` imports its own command, in two thirds of the time
  (https://github.com/encode/httpx/pull/3547, open; httpx2 does so no longer,
  https://github.com/pydantic/httpx2/pull/947).

It can go when a client takes a network backend, and the import of the command is lazy. It imports neither.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from collidium.overrides.httpcore import replace_backend

TESTED: Final = {"httpx": ("0.28.0", "0.28.1"), "httpx2": ("2.16.2",)}


def replace_backends(client: Any, replacement: Callable[[Any], object]) -> None:
    """Replace the network backends of a client of httpx or httpx2 by what ``replacement`` returns."""
    for transport in (client._transport, *client._mounts.values()):
        if (pool := getattr(transport, "_pool", None)) is not None:
            replace_backend(pool, replacement)


def skip_command() -> None:
    """Let ``import httpx`` go without its command, as where rich is missing."""
    sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None stands for what is not imported
