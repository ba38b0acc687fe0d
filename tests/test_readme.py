"""Every command of the README and the pages that continue it, in a copy of the checkout, on a real server."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import click
import pytest
from docs.fill_documents import filled
from tests.documents import ROOT, CodeBlock, code_blocks
from tests.needs import Needs
from tests.virtual_environments import VirtualEnvironment

from collidium.cli.root import CommandSession, collidium
from collidium.testing.server import ServerProcess

README = ROOT / "README.md"
#: Read in this order: each page continues where the one before ended.
WALKTHROUGH = [
    README,
    *(ROOT / "docs" / name for name in ("events.md", "score-at-home.md", "first-task.md", "serve.md")),
]
#: The remark above a block that CI runs, because it contains this test.
RUN_BY_CI = "run by .ci/run"
NOT_OF_A_CHECKOUT = shutil.ignore_patterns(".*", "__pycache__", "build", "dist")


class Reader:
    """A user who follows the README: a checkout, a shell whose variables last, and a server."""

    def __init__(self, tmp_path: Path, servers: ExitStack) -> None:
        self.checkout = tmp_path / "checkout"
        self.home = tmp_path / "home"
        self.home.mkdir()
        shutil.copytree(ROOT, self.checkout, ignore=NOT_OF_A_CHECKOUT)
        venv = VirtualEnvironment.make(tmp_path / "venv")
        self.environment = venv.environment(self.home)
        data = {
            "PLATFORM_DATA_DIR": str(self.home / ".local/share/collidium"),
            # Longer than it takes to start the command that cancels, however busy the machine is.
            "PLATFORM_MOCK_SECONDS": "12",
        }
        self.server = ServerProcess(self.home, None, data, [str(venv.programs / "collidium")])
        self.servers = servers
        self.port = 0

    def follow(self, document: str, block: CodeBlock) -> None:
        if name := re.fullmatch(r"file: (\S+)", block.remark):
            (self.checkout / name[1]).write_text(block.code)
        elif block.language == "sh" and not block.remark.startswith(RUN_BY_CI):
            commands, serve, options = block.code.partition("collidium serve")
            self.run(commands, f"{document}:{block.line}")
            if serve:
                self.serve(*shlex.split(options))

    def run(self, commands: str, place: str) -> None:
        """Run commands in a shell that stops at the first failure and knows the variables of the last one."""
        variables = shlex.quote(str(self.home / "variables"))
        script = f"""
            if [ -e {variables} ]; then . {variables}; fi 2>/dev/null
            set -euo pipefail\n{commands}
            declare -p | grep -v '^declare -[A-Za-z]*[ar]' > {variables}
        """
        done = subprocess.run(
            ["bash", "-c", script],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=self.checkout,
            env=self.environment,
            timeout=300,
        )
        shown = f"{place}\n{commands}\n{done.stdout}\n{done.stderr}\n{self.server.log()}"
        assert done.returncode == 0, shown
        assert "Traceback" not in done.stdout + done.stderr, shown

    def serve(self, *options: str) -> None:
        """Start the server in the place of the one that runs, on the same port as a user's would be."""
        if self.port:
            assert self.server.stop() == 0, self.server.log()
        else:
            self.servers.callback(self.server.close)
        self.server.start(*options, port=self.port)
        self.port = urlsplit(self.server.base_url).port or 0
        # Any other server is on the default port.
        self.environment |= {"PLATFORM_BACKEND": self.server.base_url, "PLATFORM_PORT": str(self.port)}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with ExitStack() as servers:
        yield Reader(tmp_path, servers)


@pytest.mark.timeout(400)  # it installs the package and all it needs from an index
def test_readme_works_as_written(reader: Reader) -> None:
    for block in code_blocks(README):
        reader.follow(README.name, block)
    leaders = reader.home / "leaders"
    reader.run(f"collidium leaderboard tracking > {leaders}", "leaderboard")
    assert "anna" in leaders.read_text()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_walkthrough_works_as_written(needs: Needs, reader: Reader) -> None:
    needs("curl")
    for document in WALKTHROUGH:
        for block in code_blocks(document):
            reader.follow(document.name, block)
    leaders = reader.home / "leaders"
    reader.run(f"collidium leaderboard multiplicity > {leaders}", "leaderboard")
    assert "anna" in leaders.read_text()
    requests = reader.home / "requests"
    reader.run(f"collidium requests --json > {requests}", "requests")
    ordered = [(request["channel"], request["state"]) for request in json.loads(requests.read_text())]
    assert ordered == [("zmumu", "cancelled"), ("ttbar", "completed")]


COMMANDS = [
    command.strip()
    for document in WALKTHROUGH
    for block in code_blocks(document)
    if block.language == "sh"
    for command in re.findall(r"\bcollidium ([a-z][^|;&)\n]*)", block.code.replace("\\\n", " "))
]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_these_options(command: str) -> None:
    group, arguments = collidium, shlex.split(command)
    context = click.Context(group, obj=CommandSession())
    name, found, arguments = group.resolve_command(context, arguments)
    while isinstance(found, click.Group):
        context = click.Context(found, context)
        name, found, arguments = found.resolve_command(context, arguments)
    assert found is not None
    try:
        found.make_context(name, arguments, context)
    except click.BadParameter as problem:
        # Files that the README makes on the way are not here.
        if "does not exist" not in problem.message:
            raise


def test_only_what_ci_runs_is_left_out() -> None:
    (left_out,) = [block for block in code_blocks(README) if block.remark.startswith(RUN_BY_CI)]
    ci = (ROOT / ".ci/run").read_text()
    assert f"test_command='{left_out.code.strip()}'" in ci
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_files_shown_in_full_are_the_files() -> None:
    for document in WALKTHROUGH:
        text = document.read_text()
        assert filled(text) == text, f"{document.name}: run python docs/fill_documents.py"


def test_every_block_is_either_run_written_or_compared() -> None:
    for block in (block for document in WALKTHROUGH for block in code_blocks(document)):
        assert block.language == "sh" or re.match(r"(file|same as): ", block.remark), block


def test_readme_is_short() -> None:
    assert len(README.read_text().splitlines()) <= 170
