"""huggingface_hub: allow calls of a hub after it was imported.

It reads ``HF_HUB_OFFLINE`` when it is imported, and ``is_offline_mode``
(https://github.com/huggingface/huggingface_hub/pull/3593) returns what it read. It can go when there is a
function that sets it.
"""

from __future__ import annotations

import sys
from typing import Final

TESTED: Final = {"huggingface_hub": ("1.20.0", "2.4.0")}


def go_online() -> None:
    """Allow calls if the library was imported while the environment forbade them; imports nothing."""
    if constants := sys.modules.get("huggingface_hub.constants"):
        constants.HF_HUB_OFFLINE = False  # type: ignore[attr-defined]  # not in its types
