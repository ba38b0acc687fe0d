"""Run by ``tox -e wheel`` in an environment that holds the wheel and its dependencies, nothing else.

Only the standard library and the installed platform are used; the argument is the checkout, which must stay
out of reach.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.metadata import entry_points
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = ("collidium", "collidium_tasks", "collidium_runners", "collidium_plugins", "collidium_tui")


def main(checkout: Path) -> None:
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None, f"{package} is not in the wheel"
        assert spec.origin is not None, package
        assert "site-packages" in Path(spec.origin).parts, f"{package} comes from {spec.origin}"
        assert (files(package) / "py.typed").is_file(), f"{package} has no py.typed"
    assert not any(Path(entry or ".").resolve() == checkout for entry in sys.path), (
        "the source is on the path"
    )
    assert find_spec("pytest") is None, "the environment holds more than a user's"
    plugins = collidium("plugin", "list", "--json")["plugins"]
    declared = {point.name for point in entry_points(group="collidium")}
    assert {plugin["name"] for plugin in plugins} == declared
    assert {plugin["state"] for plugin in plugins} == {"loaded"}, plugins
    with tempfile.TemporaryDirectory() as directory:
        result = collidium("demo", "--json", PLATFORM_DATA_DIR=directory)
    print(json.dumps(result, indent=2)[:2000])
    print(f"{len(declared)} plugins loaded, demo done: the wheel works on its own")


def collidium(*arguments: str, **environment: str) -> dict[str, Any]:
    """The parsed output of the installed command."""
    command = [str(Path(sys.executable).with_name("collidium")), *arguments]
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
