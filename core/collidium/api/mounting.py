"""Mounts the blueprints of plugins, each in isolation: one that cannot be mounted is its plugin's failure."""

from __future__ import annotations

import logging
import re
from typing import Final

from quart import Blueprint, Quart

from collidium.api.isolation import Isolation
from collidium.plugins import Plugins
from collidium.settings import Settings

logger = logging.getLogger(__name__)

#: First path segments that belong to the platform; no plugin may mount there.
RESERVED: Final = frozenset({"v1", "admin", "healthz", "readyz", "metrics", "docs", "openapi.json"})

#: No empty segments, no variables, and none that leads upwards.
_PREFIX: Final = re.compile(r"(/(?!\.+(/|\Z))[A-Za-z0-9._~-]+)+")


def mount(app: Quart, settings: Settings, loaded: Plugins) -> None:
    """Mount every blueprint that can be; the others are told among the failures of ``loaded``."""
    provided = loaded.blueprints(settings)
    mounted: list[str] = []
    for prefix, blueprint in provided.things.items():
        try:
            _check(blueprint, prefix, mounted)
            # Once aside: what breaks off in the middle must leave nothing behind in the real application.
            _scratch(app).register_blueprint(blueprint)
            Isolation(app, blueprint, loaded, provided.origins[prefix]).register()
        except (Exception, SystemExit) as error:
            # Whatever a stranger's blueprint raises is that plugin's failure alone.
            origin = provided.origins[prefix]
            logger.exception("the blueprint of plugin %s at %r is not mounted", origin, prefix)
            loaded.fail(origin, f"blueprint {prefix!r} is not mounted: {type(error).__name__}: {error}")
        else:
            mounted.append(prefix)


def _check(blueprint: object, prefix: str, mounted: list[str]) -> None:
    if not isinstance(blueprint, Blueprint):
        raise TypeError(f"{type(blueprint).__name__} is no quart.Blueprint")
    if not _PREFIX.fullmatch(prefix):
        raise ValueError("a url_prefix is written /name or /name/name")
    if prefix.split("/")[1] in RESERVED:
        raise ValueError("the address is the platform's own")
    for other in mounted:
        if f"{prefix}/".startswith(f"{other}/") or f"{other}/".startswith(f"{prefix}/"):
            raise ValueError(f"the address overlaps with {other}, which another blueprint has")


def _scratch(app: Quart) -> Quart:
    scratch = Quart(app.import_name, static_folder=None)
    scratch.url_map.converters.update(app.url_map.converters)
    scratch.url_map.merge_slashes = app.url_map.merge_slashes
    return scratch
