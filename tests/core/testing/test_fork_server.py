"""Forked processes behave as new interpreters, and end with the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from signal import SIGKILL

import pytest
from tests.waiting import eventually

from collidium.testing.fork_server import fork_server
from collidium.testing.server import run_command

SERVE = """
import sys
from pathlib import Path
from collidium.testing.server import ServerProcess
with ServerProcess(Path(sys.argv[1])) as server:
    print(server.pid, flush=True)
    sys.stdin.read()
"""


def test_a_command_has_its_output_and_exit_code(isolated_environment: dict[str, str], tmp_path: Path) -> None:
    done = run_command(["--version"], isolated_environment, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("collidium")
    done = run_command(["no-such-command"], isolated_environment, tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no-such-command" in done.stderr


def test_a_command_has_its_environment_and_directory(
    isolated_environment: dict[str, str], tmp_path: Path
) -> None:
    program = "import os; from collidium.hookspecs import hookimpl; import sys"
    program += f"; print(os.getcwd(), os.environ['MARK'], {str(Path.cwd())!r} in sys.path)"
    # What this command does not need, and servers do, was imported before the fork.
    program += "; print('collidium.server.worker' in sys.modules, 'collidium.api.app' in sys.modules)"
    (tmp_path / "greeting.py").write_text(program)
    (tmp_path / "greeting-1.dist-info").mkdir()
    (tmp_path / "greeting-1.dist-info" / "METADATA").write_text("Name: greeting\nVersion: 1\n")
    (tmp_path / "greeting-1.dist-info" / "entry_points.txt").write_text("[collidium]\ngreeting = greeting\n")
    # Also where the tests themselves run: that is on the path of what is forked.
    path = f"{tmp_path}{os.pathsep}{Path.cwd()}"
    environment = isolated_environment | {"PYTHONPATH": path, "MARK": "of this test"}
    done = run_command(["plugin", "list"], environment, tmp_path)
    assert done.stdout.startswith(f"{tmp_path} of this test True\nTrue True\n"), done.stderr


@pytest.mark.parametrize("changed", ["PYTHONWARNINGS", "LC_ALL", "PYTHONPATH"])
def test_a_different_interpreter_is_not_forked(
    isolated_environment: dict[str, str], tmp_path: Path, changed: str
) -> None:
    (tmp_path / "sitecustomize.py").touch()
    with tempfile.TemporaryFile() as output:
        environment = isolated_environment | {changed: str(tmp_path)}
        assert fork_server().start(["--version"], environment, tmp_path, output, output) is None


def test_forked_processes_end_when_the_tests_are_killed(
    isolated_environment: dict[str, str], tmp_path: Path
) -> None:
    command = [sys.executable, "-c", SERVE, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=isolated_environment, text=True, **pipes) as tests:
        assert tests.stdout is not None
        server = int(tests.stdout.readline())
        assert Path(f"/proc/{server}").exists()
        tests.send_signal(SIGKILL)
    eventually(lambda: not Path(f"/proc/{server}").exists())
