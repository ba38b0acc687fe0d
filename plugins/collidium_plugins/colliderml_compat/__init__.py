"""The API of the public ``colliderml`` client, mounted at ``/compat/colliderml``, in that client's own names.

The platform's own handlers answer; :mod:`~collidium_plugins.colliderml_compat.routes` has the tables of calls
and of names. Importing this imports nothing heavy: every ``collidium`` command and every scoring worker does.
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
