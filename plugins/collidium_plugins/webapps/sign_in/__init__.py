"""Signing in with the hub: OAuth's authorization code with PKCE, sessions on the server's side, forms of ours alone.

The browser holds one random key in a cookie, and the server its hash. All else that a sign-in or a form needs to
be recognised by follows from that key (:func:`~collidium_plugins.webapps.sign_in.keys.derived`) and is kept nowhere.
"""

from __future__ import annotations

from typing import Final

from collidium_plugins.webapps.routes import Route

ROUTES: Final[list[Route]] = []


async def recognise() -> None:
    """Before a page is asked for: whose browser it is."""
