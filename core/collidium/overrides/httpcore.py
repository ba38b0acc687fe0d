"""httpcore, and httpcore2 of httpx2: the network backend of a pool that exists.

A pool takes a network backend when it is made, and httpx makes it: the issue is httpx's
(https://github.com/encode/httpx/pull/3749, open), and it can go with the override of httpx.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

TESTED: Final = {"httpcore": ("1.0.9",), "httpcore2": ("2.16.2",)}


def replace_backend(pool: Any, replacement: Callable[[Any], object]) -> None:
    """Replace the network backend of a connection pool by what ``replacement`` returns for it."""
    pool._network_backend = replacement(pool._network_backend)
