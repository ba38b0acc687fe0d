"""Ordering events: the form with its price, and what became of orders."""

from __future__ import annotations

from typing import Final

from collidium_plugins.webapps.context import Route
from collidium_plugins.webapps.simulate import ordering, requests

ROUTES: Final[list[Route]] = [
    ("GET", "", ordering.show),
    ("POST", "", ordering.place_order),
    ("GET", "/latest", requests.latest),
    ("GET", "/requests", requests.show_all),
    ("GET", "/requests/<request_id>", requests.show),
    ("GET", "/requests/<request_id>/live", requests.live),
    ("POST", "/requests/<request_id>/cancel", requests.cancel),
]
