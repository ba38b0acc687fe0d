"""The leaderboards, and a page for each submission on them."""

from __future__ import annotations

from typing import Final

from collidium_plugins.webapps.context import Route
from collidium_plugins.webapps.leaderboard import board, provenance

ROUTES: Final[list[Route]] = [
    ("GET", "", board.first),
    ("GET", "/<task>", board.show),
    ("GET", "/submissions/<submission_id>", provenance.show),
    ("POST", "/submissions/<submission_id>", provenance.set_links),
]
