"""The API of the public ``colliderml`` client, mounted at ``/compat/colliderml``, with that client's names.

The platform's own handlers respond; :mod:`~collidium_plugins.colliderml_compat.routes` maps routes and names.
Every ``collidium`` command imports this module, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from collidium import hookspecs

if TYPE_CHECKING:
    from quart import Blueprint

    from collidium.settings import Settings


@hookspecs.hookimpl
def collidium_blueprints(settings: Settings) -> Sequence[Blueprint]:
    from collidium_plugins.colliderml_compat.routes import make_blueprint

    return [make_blueprint()]
