"""Collidium: the open platform for particle-physics machine learning."""

import sys

__version__ = "0.4.0a1"

# httpx imports its own command and rich and pygments, where they are installed: two thirds of its time.
# It goes without, as where rich is missing.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
