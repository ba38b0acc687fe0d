"""What scripts call for the account: the same endpoints, with the session's token in place of the cookie."""

from __future__ import annotations

from typing import Final

from collidium_plugins.webapps.routes import Route

ROUTES: Final[list[Route]] = []
