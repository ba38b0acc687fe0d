"""What a handler works with."""

from __future__ import annotations

from typing import cast

from quart import current_app

from collidium.platform import Platform

EXTENSION = "platform"


def platform() -> Platform:
    """The platform that the current application serves."""
    return cast(Platform, current_app.extensions[EXTENSION])
