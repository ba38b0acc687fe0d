"""The model zoo."""

from __future__ import annotations

from typing import Final

from quart import Response

from collidium_plugins.webapps.rendering import render
from collidium_plugins.webapps.routes import Route


async def show() -> Response:
    return await render("models.html")


ROUTES: Final[list[Route]] = [("GET", "", show)]
