"""Versions of the libraries that ``collidium.overrides`` changes."""

from __future__ import annotations

from importlib import import_module, metadata
from pkgutil import iter_modules

from collidium import overrides


def tested() -> dict[str, tuple[str, ...]]:
    """Return the versions that the overrides of each library were tested with, by distribution."""
    found: dict[str, tuple[str, ...]] = {}
    for module in iter_modules(overrides.__path__, f"{overrides.__name__}."):
        found |= import_module(module.name).TESTED
    return found


def untested() -> list[str]:
    """Return the installed libraries with an override that was not tested with their version."""
    installed = {name: _version(name) for name in tested()}
    return [
        f"{name} {installed[name]} (tested: {', '.join(versions)})"
        for name, versions in tested().items()
        if installed[name] is not None and installed[name] not in versions
    ]


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
