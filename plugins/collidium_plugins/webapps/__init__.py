"""The pages for browsers: front page, event display, simulation form, leaderboard and model zoo.

They are thin: whatever they show or do, they ask of the ``/v1`` endpoints as everybody does. Importing this
imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collidium import hookspecs

if TYPE_CHECKING:
    import click
    from quart import Blueprint

    from collidium.settings import Settings


@hookspecs.hookimpl
def collidium_blueprints(settings: Settings) -> Sequence[Blueprint]:
    from collidium_plugins.webapps.site import make_blueprints

    return make_blueprints(settings)


@hookspecs.hookimpl
def collidium_commands() -> Sequence[click.Command]:
    from collidium_plugins.webapps.command import web

    return [web]
