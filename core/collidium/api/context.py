"""What a handler works with."""

from __future__ import annotations

from typing import cast

from quart import Quart, current_app

from collidium.platform import Platform

_EXTENSION = "platform"


def give(app: Quart, opened: Platform) -> None:
    """Let the application serve that platform."""
    app.extensions[_EXTENSION] = opened


def platform() -> Platform:
    """The platform that the current application serves."""
    return cast(Platform, current_app.extensions[_EXTENSION])
