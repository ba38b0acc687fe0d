"""The kit, on the wheels of a platform and a third-party task in an environment of their own.

A task written with the kit alone becomes a benchmark, and leaves without taking its scores along; what
``collidium task new`` writes is installed and passes its own tests as it stands.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.documents import ROOT, code_blocks
from tests.virtual_environments import VirtualEnvironment

from collidium.challenges import gate
from collidium.client import Client
from collidium.demo import EVENTS_DIRECTORY
from collidium.errors import Unavailable
from collidium.testing.conformance import check_task
from collidium.testing.server import ServerProcess
from collidium.testing.task_template import write_package

VERTEXING = ROOT / "examples/collidium-task-vertexing"
PAGE = ROOT / "docs/write-a-task.md"
#: Runs commands one after the other in one interpreter: its imports are most of what a command costs.
COMMANDS = """
import json, sys
from collidium.cli import run
sys.exit(max(run(arguments) for arguments in json.loads(sys.argv[1])))
"""
#: The plugins of pytest that the suite has are no part of what is tested, and slow to load.
NO_PLUGINS = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


class Machine:
    """An environment with the platform's wheel and the example's, and the platform in it, not yet started."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.venv = VirtualEnvironment.make(directory / "venv")
        self.environment = self.venv.environment(directory, NO_PLUGINS)
        shutil.copytree(VERTEXING, self.vertexing, ignore=shutil.ignore_patterns("__pycache__"))
        wheels = [build(source, directory / "wheels") for source in (ROOT, self.vertexing)]
        self.pip("install", "--no-deps", "--ignore-installed", *map(str, wheels))
        program = [str(self.python), "-m", "collidium"]
        self.platform = ServerProcess(directory / "server", program=program)

    @property
    def python(self) -> Path:
        return self.venv.programs / "python"

    @property
    def vertexing(self) -> Path:
        return self.directory / VERTEXING.name

    def pip(self, *arguments: str) -> None:
        self.run(self.python, "-m", "pip", "--quiet", *arguments)

    def run(self, *command: str | Path) -> str:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, env=self.environment, cwd=self.directory
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, *commands: str) -> list[Any]:
        """What commands on the platform's data print as JSON."""
        arguments = json.dumps([[*command.split(), "--json"] for command in commands])
        environment = self.platform.environment | NO_PLUGINS
        done = subprocess.run(
            [self.python, "-c", COMMANDS, arguments],
            check=False,
            capture_output=True,
            text=True,
            env=environment,
            cwd=self.directory,
        )
        assert done.returncode == 0, done.stderr
        return documents(done.stdout)


def documents(text: str) -> list[Any]:
    """JSON documents, one after the other."""
    found, decoder = [], json.JSONDecoder()
    while text := text.lstrip():
        document, end = decoder.raw_decode(text)
        found.append(document)
        text = text[end:]
    return found


def vertexing(tasks: list[Any]) -> Any:
    (found,) = [task for task in tasks if task["name"] == "vertexing"]
    return found


def build(source: Path, directory: Path) -> Path:
    """The wheel, built by hatchling as it is installed here: isolation would download it."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    before = set(directory.glob("*.whl"))
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (built,) = set(directory.glob("*.whl")) - before
    return built


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    made = Machine(tmp_path_factory.mktemp("machine"))
    with closing(made.platform):
        yield made


def test_what_the_kit_writes_passes_its_own_tests(machine: Machine) -> None:
    machine.run(machine.python, "-m", "collidium", "task", "new", "counting")
    machine.pip("install", "--no-deps", "./collidium-task-counting")
    tests = [f"{name}/tests" for name in ("collidium-task-counting", machine.vertexing.name)]
    machine.run(machine.python, "-m", "pytest", "--import-mode=importlib", "-p", "no:cacheprovider", *tests)


def test_who_follows_the_page_has_a_task_that_passes(tmp_path: Path) -> None:
    card, prepare, block = (block.code for block in code_blocks(PAGE) if block.language == "python")
    package = tmp_path / "package"
    write_package("hard_particles", package, {})
    source = package / "collidium_task_hard_particles"
    for line in re.findall(r"^    (?:description|truth_sources)=.*$", card, re.MULTILINE):
        replace(source / "card.py", rf"^    {line.strip().partition('=')[0]}=[^\n]*$", line)
    replace(source / "task.py", r"^    def prepare.*?(?=^    def check)", prepare.partition("\n")[2] + "\n")
    replace(source / "task.py", r"Tables, Task$", "Tables, Task, UnusableTruth")
    replace(package / "tests/test_task.py", r"^def block.*?(?=^def metrics)", block + "\n\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=package, env={**os.environ, **NO_PLUGINS}
    )
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def replace(file: Path, pattern: str, text: str) -> None:
    """Replace what the pattern finds, once, by the text."""
    content, found = re.subn(
        pattern, lambda _: text, file.read_text(), count=1, flags=re.MULTILINE | re.DOTALL
    )
    assert found, pattern
    file.write_text(content)


def test_a_task_of_a_wheel_leaves_its_scores_behind(machine: Machine) -> None:
    where = machine.run(machine.python, "-c", "import collidium; print(collidium.__file__)")
    assert Path(where.strip()).is_relative_to(machine.venv.directory), "the wheel is not what is tested"
    events = machine.directory / "events"
    machine.run(machine.python, "-m", "collidium_task_vertexing.synthetic", str(events))
    checked, tasks, _, added = machine.ask(
        f"task check vertexing --from {events}",
        "task list",
        f"truth import vertexing --from {events} --events 0:20",
        "task add vertexing",
    )
    assert checked["conforms"]
    before = vertexing(tasks)
    assert (before["installed"], before["listed"]) == (True, False)
    assert before["distribution"] == "collidium-task-vertexing"
    assert (added["listed"], added["reason"]) == (True, None)

    platform = machine.platform
    platform.start()
    token = platform.add_user("anna")
    predictions = machine.directory / "predictions.parquet"
    pq.write_table(the_hard_scatters(events), predictions)
    with Client(platform.base_url, token) as anna:
        receipt = anna.submit("vertexing", predictions)
        assert receipt.scores == {"efficiency": 1.0, "resolution": pytest.approx(30, abs=0.01)}
        (place,) = anna.leaderboard("vertexing")
        assert (place.rank, place.hub_username, place.scores) == (1, "anna", receipt.scores)

    assert platform.stop() == 0
    machine.pip("uninstall", "--yes", "collidium-task-vertexing")
    platform.start()
    with Client(platform.base_url, token) as anna:
        assert "vertexing" not in {task.name for task in anna.tasks()}
        assert anna.submission(receipt.submission_id).scores == receipt.scores
        assert anna.me().credits == 10 + receipt.credits_earned > 10
        with pytest.raises(Unavailable, match="no submissions now: no installed plugin provides it"):
            anna.submit("vertexing", predictions)
    (tasks,) = machine.ask("task list")
    left = vertexing(tasks)
    assert (left["installed"], left["reason"]) == (False, gate.NOT_INSTALLED)


def test_the_example_of_the_documents_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples/collidium-task-multiplicity"))
    task = import_module("collidium_task_multiplicity").Multiplicity()
    hits = pq.read_table(EVENTS_DIRECTORY / "tracker_hits.parquet")
    assert check_task(task, {"tracker_hits": hits}) == {"within_ten_percent": 0.2, "mean_error": 13.2}


def the_hard_scatters(events: Path) -> pa.Table:
    """30 um from the particles of the hard scatter that the generator made."""
    rows = pq.read_table(events / "particles.parquet").to_pylist()
    true = [
        next(
            vz
            for vz, vertex, primary in zip(row["vz"], row["vertex_primary"], row["primary"], strict=True)
            if vertex == 1 and primary
        )
        for row in rows
    ]
    return pa.table({"event_id": [row["event_id"] for row in rows], "z": [z + 0.03 for z in true]})
