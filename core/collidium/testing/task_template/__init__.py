"""Writes the package of a new benchmark task: complete, installable, and its own tests pass at once.

``files/`` holds what is written, as :class:`string.Template`.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Final

from collidium.errors import InvalidInput

#: A task's name, without underscores that the distribution's name would lose.
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST_NAME: Final = 64

#: File of the new package -> what it is made of.
_FILES: Final[Mapping[str, str]] = {
    "pyproject.toml": "pyproject.template",
    "README.md": "readme.template",
    "$package/__init__.py": "init.template",
    "$package/card.py": "card.template",
    "$package/task.py": "task.template",
    "$package/py.typed": "py.typed.template",
    "tests/test_task.py": "test_task.template",
}


def default_directory(name: str) -> Path:
    """The default directory of a task's package: the name of its distribution."""
    return Path(_distribution(name))


def write_package(name: str, directory: Path, taken: Mapping[str, str]) -> list[Path]:
    """Write the package of task ``name`` as ``directory``, which must not exist; returns its files.

    ``taken`` are the tasks that are installed, each with its distribution. All or nothing is written. Raises
    InvalidInput with everything that is wrong.
    """
    problems = [*_problems_of_name(name, taken), *_problems_of_directory(directory)]
    if problems:
        detail = "; ".join(problem["detail"] for problem in problems)
        raise InvalidInput(f"no task can be written: {detail}", errors=problems)
    unfinished = Path(tempfile.mkdtemp(prefix=".collidium-task-", dir=directory.parent))
    try:
        written = [_write(unfinished, name, *file) for file in _FILES.items()]
        unfinished.chmod(0o755)
        unfinished.rename(directory)
    except BaseException:  # also Ctrl-C leaves nothing half written
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return [directory / path for path in written]


def _problems_of_name(name: str, taken: Mapping[str, str]) -> Iterator[dict[str, str]]:
    if not _NAME.fullmatch(name):
        detail = f"{name!r} is not a task name: use a to z and 0 to 9, a letter first, with single _ between"
        yield {"field": "NAME", "detail": detail}
    if len(name) > _LONGEST_NAME:
        detail = f"the name has {len(name)} characters, more than {_LONGEST_NAME}"
        yield {"field": "NAME", "detail": detail}
    if name in taken:
        yield {"field": "NAME", "detail": f"{taken[name]} already provides a task {name!r}"}


def _problems_of_directory(directory: Path) -> Iterator[dict[str, str]]:
    if directory.exists() or directory.is_symlink():
        yield {"field": "--directory", "detail": f"{directory} exists already"}
    elif not directory.parent.is_dir():
        yield {"field": "--directory", "detail": f"there is no directory {directory.parent}"}


def _write(directory: Path, name: str, path: str, template: str) -> Path:
    words = {
        "name": name,
        "title": name.replace("_", " ").capitalize(),
        "package": f"collidium_task_{name}",
        "distribution": _distribution(name),
        "task_class": "".join(word.capitalize() for word in name.split("_")) + "Task",
    }
    relative = Path(Template(path).substitute(words))
    target = directory / relative
    target.parent.mkdir(exist_ok=True)
    text = (files(__name__) / "files" / template).read_text(encoding="utf-8")
    target.write_text(Template(text).substitute(words), encoding="utf-8")
    return relative


def _distribution(name: str) -> str:
    return f"collidium-task-{name.replace('_', '-')}"
