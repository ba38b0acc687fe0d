"""Mounts the blueprints of plugins, each in isolation: one that cannot be mounted is its plugin's failure."""

from __future__ import annotations

import re
from typing import Final

from quart import Blueprint, Quart

from collidium.api.isolation import Isolation
from collidium.plugins import Plugins
from collidium.settings import Settings

#: First path segments that belong to the platform; no plugin may mount there.
RESERVED: Final = frozenset({"v1", "admin", "healthz", "readyz", "metrics", "openapi.json"})

#: The front page: one plugin may have this address, and nothing below it.
FRONT: Final = "/"

#: No empty segments, no variables, and none that leads upwards.
_PREFIX: Final = re.compile(r"(/(?!\.+(/|\Z))[A-Za-z0-9._~-]+)+")


def mount(app: Quart, settings: Settings, loaded: Plugins) -> None:
    """Mount every blueprint that can be; the others are recorded among the failures of ``loaded``."""
    provided = loaded.blueprints(settings)
    mounted: list[str] = []
    for prefix, blueprint in provided.things.items():
        origin = provided.origins[prefix]
        with loaded.isolated(origin, f"mounting blueprint {prefix!r}"):
            _check(blueprint, prefix, mounted)
            _try_aside(app, blueprint, prefix)
            Isolation(app, blueprint, loaded, origin).register()
            mounted.append(prefix)


def has_front_page(app: Quart) -> bool:
    """Whether a plugin brought one."""
    return any(rule.rule == FRONT for rule in app.url_map.iter_rules())


def _check(blueprint: object, prefix: str, mounted: list[str]) -> None:
    if not isinstance(blueprint, Blueprint):
        raise TypeError(f"{type(blueprint).__name__} is no quart.Blueprint")
    if prefix == FRONT:
        return
    if not _PREFIX.fullmatch(prefix):
        raise ValueError("a url_prefix is written /name or /name/name")
    if prefix.split("/")[1] in RESERVED:
        raise ValueError("the address is the platform's own")
    for other in mounted:
        if other != FRONT and _overlap(prefix, other):
            raise ValueError(f"the address overlaps with {other}, which another blueprint has")


def _overlap(prefix: str, other: str) -> bool:
    return f"{prefix}/".startswith(f"{other}/") or f"{other}/".startswith(f"{prefix}/")


def _try_aside(app: Quart, blueprint: Blueprint, prefix: str) -> None:
    """Mount it elsewhere first: what breaks off in the middle leaves nothing in the application."""
    scratch = _scratch(app)
    scratch.register_blueprint(blueprint)
    if prefix == FRONT and any(rule.rule != FRONT for rule in scratch.url_map.iter_rules()):
        raise ValueError("a blueprint at / has the front page alone: mount the rest under names of its own")


def _scratch(app: Quart) -> Quart:
    scratch = Quart(app.import_name, static_folder=None)
    scratch.url_map.converters.update(app.url_map.converters)
    scratch.url_map.merge_slashes = app.url_map.merge_slashes
    return scratch
