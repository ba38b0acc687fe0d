"""Installs plugins as real distributions: a folder with modules and metadata, as pip leaves them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def install(
    site: Path,
    distribution: str,
    modules: Mapping[str, str],
    entry_points: Mapping[str, str] | None = None,
    commands: Mapping[str, str] | None = None,
) -> None:
    """Write a distribution into ``site``.

    ``modules`` are sources by module name; ``entry_points`` of group ``collidium`` map names to modules
    (default: each module under its own name), ``commands`` those of group ``collidium.commands``.
    """
    site.mkdir(parents=True, exist_ok=True)
    for name, source in modules.items():
        (site / f"{name}.py").write_text(source)
    metadata = site / f"{distribution.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {distribution}\nVersion: 1.0\n")
    points = entry_points if entry_points is not None else {name: name for name in modules}
    groups = {"collidium": points, "collidium.commands": commands or {}}
    (metadata / "entry_points.txt").write_text("".join(_group(*group) for group in groups.items()))


def _group(name: str, points: Mapping[str, str]) -> str:
    return f"[{name}]\n" + "".join(f"{point} = {target}\n" for point, target in points.items())
