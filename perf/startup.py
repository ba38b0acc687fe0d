"""CPU of new processes: imports, the command's help, a server until it is ready; control: Python alone."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from measuring import TURNS, Figure, cpu_seconds

from collidium.testing.server import ServerProcess

COMMANDS = {
    "`import collidium`": ["-c", "import collidium"],
    "`import collidium.client`": ["-c", "import collidium.client"],
    "`collidium --help`": ["-m", "collidium", "--help"],
}


def milliseconds(arguments: Sequence[str]) -> float:
    """CPU of a process of Python, from start to end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def until_ready(directory: Path) -> float:
    """CPU of a server until it has answered that it is ready."""
    program = (sys.executable, "-X", "utf8", "-m", "collidium")  # not the one that is forked, ready to import
    with ServerProcess(directory, program=program) as server:
        return cpu_seconds(server.pid) * 1000


def by_turns(name: str, measure: Callable[[], float], turns: int) -> Figure:
    pairs = [(measure(), milliseconds(["-c", "pass"])) for _ in range(turns)]
    return Figure(name, *zip(*pairs, strict=True))


def figures(quick: bool) -> Iterator[Figure]:
    turns = 1 if quick else TURNS
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else this checkout is compiled in every turn
    for name, arguments in COMMANDS.items():
        yield by_turns(name, partial(milliseconds, arguments), turns)
    with tempfile.TemporaryDirectory() as directory:
        until_ready(Path(directory))  # which makes the database
        yield by_turns("a server that is ready", partial(until_ready, Path(directory)), turns)
