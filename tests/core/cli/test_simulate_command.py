"""``collidium simulate`` on this machine, as it is typed, killed and typed again."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.core.cli.conftest import RunCommand
from tests.core.pipelines import stages
from tests.distributions import install
from tests.podman import Podman
from tests.waiting import eventually

from collidium.cli.progress import stage_progress
from collidium.contracts.pipeline import Stage
from collidium.pipelines.stages import Progress
from collidium.testing.server import COLLIDIUM

PLUGIN = """
import os
from pathlib import Path
from tests.core.pipelines import stages
from collidium.hookspecs import hookimpl

@hookimpl
def collidium_pipelines():
    return [stages.native(Path(os.environ["HOME"], "scripts", "stage")), stages.contained(name="boxed")]
"""
ROOT = Path(__file__).parents[3]
TTBAR = ("simulate", "--pipeline", "shell", "--channel", "ttbar", "--events", "4", "--pileup", "0")


class Shell(RunCommand):
    """Runs commands on a machine with the pipelines ``shell`` and ``boxed``."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        super().__init__(environment, directory)
        stages.write_script(Path(environment["HOME"]) / "scripts")
        site = directory / "site"
        install(site, "my-pipelines", {"my_pipelines": PLUGIN})
        environment["PYTHONPATH"] = f"{site}:{ROOT}"

    @contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            [*COLLIDIUM, *arguments],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def log(self, stage: str) -> str:
        log = self.directory / "out" / "logs" / f"{stage}.log"
        return log.read_text() if log.exists() else ""

    def mend(self) -> None:
        (self.directory / "out" / ".collidium" / "work" / "mended").touch()


@pytest.fixture
def shell(tmp_path: Path, isolated_environment: dict[str, str]) -> Shell:
    return Shell(tmp_path, isolated_environment)


def ordered(channel: str, pipeline: str = "shell") -> tuple[str, ...]:
    parameters = ("--channel", channel, "--events", "4", "--pileup", "0")
    return ("simulate", "--pipeline", pipeline, *parameters, "--output", "out")


def test_a_dataset_is_made_and_shown(shell: Shell) -> None:
    done = shell(*TTBAR, "--processes", "3")
    assert done.returncode == 0, done.stderr
    assert "dataset   ttbar_pu0" in done.stdout
    assert "4 (ids 0 to 3), seed 42" in done.stdout
    output = done.stderr.splitlines()
    assert output[0] == "1/4 generate: hard scatter and parton shower (about 1 s)"
    assert output[1].startswith("1/4 generate: done in ")
    assert output[-1].startswith("Simulated in ")
    assert "on=3" in (shell.directory / "ttbar_pu0/logs/write.log").read_text()
    again = shell(*TTBAR)
    assert (again.returncode, again.stderr) == (0, "The events existed already.\n")


def test_a_long_stage_has_a_line_a_minute(capsys: pytest.CaptureFixture[str]) -> None:
    stage = Stage("simulate", "hits of particles", (), (), ())
    with stage_progress() as update:
        for seconds in (0.0, 59.0, 61.0, 62.0, 130.0):
            update(Progress(stage, 1, 1, "running", seconds / 240, seconds < 100, seconds, 240 - seconds))
    assert capsys.readouterr().err.splitlines() == [
        "1/1 simulate: hits of particles (about 4 min)",
        "1/1 simulate: 1 min, about 3 min left",
        "1/1 simulate: 54%, 2 min, about 2 min left",
    ]


def test_json(shell: Shell) -> None:
    made = shell.data(*TTBAR, "--seed", "7", "--flat", "--output", "out")
    assert made["directory"] == str(shell.directory / "out")
    assert (made["seed"], made["pipeline"], made["runtime"]) == (7, "shell", "none")
    assert made["tables"]["particles"] == ["particles.parquet"]
    assert (shell.directory / "out" / "particles.parquet").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_the_stage_and_a_rerun_resumes(shell: Shell, number: signal.Signals) -> None:
    with shell.started(*ordered("hang_simulate")) as process:
        eventually(lambda: "stage simulate" in shell.log("simulate"))
        process.send_signal(number)
        _, output = process.communicate(timeout=30)
    assert process.returncode == 128 + number
    assert "finished stages are kept in out: the same command resumes from there" in " ".join(output.split())
    assert "Traceback" not in output
    assert not at_work(shell.directory)
    shell.mend()
    done = shell(*ordered("hang_simulate"))
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "1/4 generate: finished before"


def test_after_a_kill_the_stage_ends_and_a_rerun_resumes(shell: Shell) -> None:
    with shell.started(*ordered("hang_simulate")) as process:
        eventually(lambda: "stage simulate" in shell.log("simulate"))
        process.kill()
        process.wait()
    eventually(lambda: not at_work(shell.directory))
    shell.mend()
    assert shell(*ordered("hang_simulate")).returncode == 0


def test_after_a_kill_the_container_ends_and_a_rerun_resumes(shell: Shell, podman: Podman) -> None:
    shell.environment |= podman.environment
    with shell.started(*ordered("hang_generate", "boxed")) as process:
        eventually(lambda: "stage generate" in shell.log("generate"))
        process.kill()
        process.wait()
    eventually(lambda: podman.run("ps", "--quiet") == "")
    shell.mend()
    done = shell(*ordered("hang_generate", "boxed"))
    assert done.returncode == 0, done.stderr
    assert podman.run("ps", "--all", "--quiet") == ""


def test_what_a_killed_client_leaves_is_removed(tmp_path: Path) -> None:
    """podman's client may die of the signal before it can pass it on."""
    left = tmp_path / "left"
    client = ["sh", "-c", f"touch {left}; exec sleep 60"]
    code = (
        "import os; from pathlib import Path; from collidium.pipelines.processes import Log, run\n"
        f"log = Log(open(os.devnull, 'wb'), lambda line: False); client, left = {client!r}, {str(left)!r}\n"
        "options = {'environment': os.environ, 'tick': lambda: None, 'deadline': None}\n"
        "run(client, log, directory=Path.cwd(), **options, removing=['rm', left])"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        eventually(left.exists)
        process.kill()
    eventually(lambda: not left.exists())


def at_work(directory: Path) -> bool:
    """Whether a process works below the directory's output."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if str(directory / "out" / ".collidium") in words:
            return True
    return False


def test_a_failure_ends_with_1_the_last_lines_and_the_log(shell: Shell) -> None:
    failed = shell(*ordered("fail_simulate"))
    assert failed.returncode == 1
    assert failed.stdout == ""
    assert "stage 2 of 4, simulate (detector simulation), failed: exit code 3" in failed.stderr
    assert f"{shell.directory}/out/logs/simulate.log; it ends with" in failed.stderr
    assert "  - no such geometry: odd\n" in failed.stderr


def test_a_time_limit(shell: Shell) -> None:
    stopped = shell(*ordered("hang_generate"), "--time-limit", "1s")
    assert stopped.returncode == 1
    assert "the time limit was over in stage generate" in stopped.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--channel", "ttbar", "--events", "0", "--pileup", "201"), "events: a number from 1"),
        (("--preset", "nothing"), "there is no preset 'nothing'; there are: ttbar-quick"),
        (("--preset", "ttbar-quick", "--wait"), "--wait needs --remote"),
        (("--preset", "ttbar-quick", "--remote", "--flat"), "--flat simulates on this machine"),
        (("--preset", "ttbar-quick", "--time-limit", "soon"), "'soon' is not a duration"),
        (("--preset", "ttbar-quick", "--time-limit", "0"), "'0' is not a duration"),
        (("--preset", "ttbar-quick", "--runtime", "lxc"), "'lxc' is not one of"),
        (("--channel", "ttbar", "--events", "10"), "give --pileup, or --preset"),
        (("--pipeline", "acts", "--channel", "no", "--events", "1", "--pileup", "0"), "no channel 'no'"),
    ],
)
def test_wrong_usage(shell: Shell, arguments: tuple[str, ...], message: str) -> None:
    done = shell("simulate", *arguments)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert not (shell.directory / "ttbar_pu0").exists()


def test_a_pipeline_that_is_not_installed(shell: Shell) -> None:
    done = shell("simulate", "--pipeline", "none", "--preset", "ttbar-quick")
    assert done.returncode == 1
    assert "no pipeline named 'none' is installed (there are: " in done.stderr
    assert "shell" in done.stderr


def test_on_a_terminal_there_is_a_bar_for_each_stage(shell: Shell) -> None:
    shown = shell.terminal_output(*TTBAR)
    for title in stages.TITLES:
        assert title in shown


def test_the_same_from_python(shell: Shell) -> None:
    script = (
        "from collidium.client import simulate\n"
        "made = simulate('ttbar', 4, 0, pipeline='shell', output='out')\n"
        "print(made.config, sorted(made.tables), made.directory)\n"
    )
    done = subprocess.run(
        [COLLIDIUM[0], "-c", script],
        cwd=shell.directory,
        env=shell.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == f"ttbar_pu0 ['particles', 'tracker_hits'] {shell.directory}/out\n", done.stderr
