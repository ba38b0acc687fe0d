"""Changes to other people's libraries, one module per library, and the use of what they keep private.

Each module says what it changes, why, the issue upstream, and when it can go. Its ``TESTED`` has the versions
it was tested with: the first is the lower bound in ``pyproject.toml``, and the minor version after the last
is the upper bound. The modules import nothing else of the platform, and are imported where they are needed.
"""

from __future__ import annotations

from importlib import import_module, metadata
from pkgutil import iter_modules


def tested() -> dict[str, tuple[str, ...]]:
    """Return the versions that the overrides of each library were tested with, by distribution."""
    found: dict[str, tuple[str, ...]] = {}
    for module in iter_modules(__path__, f"{__name__}."):
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
