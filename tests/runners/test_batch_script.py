"""The batch script: what bash makes of it, whatever stands in a job or a setting."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collidium import settings
from collidium.contracts.runner import Job, RunnerRefused
from collidium.errors import ConfigurationError
from collidium.order import Order
from collidium_runners.batch.script import Allocation, minutes, parts, script
from collidium_runners.command import PipelineCommand, quoted
from collidium_runners.outputs import MANIFEST, parse_manifest

JOB = Job("r1", Order("ttbar", 10, 3), node_seconds=900)
#: Writes what it was called with into a file of its output.
PRINTER = (
    f"{sys.executable} -S -c 'import sys, json, pathlib;"
    ' pathlib.Path(sys.argv[1], "called").write_text(json.dumps(sys.argv[2:]))\' {output} '
)
HOSTILE = [
    "ttbar\n#SBATCH --account=other\ntouch injected",
    "$(touch injected)",
    "`touch injected`",
    "'; touch injected; '",
    '"; touch injected; "',
    "a b\tc\\",
    "{seed}",
    "--help",
    "\r\n",
    "é☃",
]


def run(written: str, directory: Path, index: int = 0, job_id: int = 7) -> subprocess.CompletedProcess[str]:
    """The script as Slurm runs it for one array task."""
    # No Slurm that may be on this machine has anything to do with it.
    task = {"SLURM_ARRAY_TASK_ID": str(index), "SLURM_ARRAY_JOB_ID": str(job_id), "SLURM_CONF": "/dev/null"}
    return subprocess.run(
        ["bash"],
        input=written,
        text=True,
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"} | task,
        cwd=directory,
        check=False,
    )


def written(command: str, directory: Path, job: Job = JOB, events_per_part: int = 4) -> str:
    return script(job, parts(job, events_per_part), PipelineCommand.parse(command), directory)


def called(directory: Path, index: int = 0, request_id: str = "r1") -> object:
    return json.loads((directory / request_id / str(index) / "called").read_text())


@pytest.mark.parametrize("index", [0, 1, 2])
def test_each_task_simulates_its_part(tmp_path: Path, index: int) -> None:
    text = written(
        PRINTER + "{channel} {events} {pileup} {seed} --first={first_event} {request_id}", tmp_path
    )
    assert run(text, tmp_path, index).returncode == 0
    part = parts(JOB, 4)[index]
    expected = ["ttbar", part.events, 3, JOB.seed, f"--first={part.first_event}", "r1"]
    assert called(tmp_path, index) == [str(word) for word in expected]


def test_output_of_array_tasks_is_private(tmp_path: Path) -> None:
    assert run(f"umask 022\n{written(PRINTER, tmp_path)}", tmp_path).returncode == 0
    made = [tmp_path / "r1", *(tmp_path / "r1").rglob("*")]
    assert len(made) == 9  # progress, status and log with a file each, output and its manifest
    assert [path for path in made if path.stat().st_mode & 0o077] == []


@pytest.mark.parametrize("channel", HOSTILE)
def test_a_hostile_channel_stays_a_word(tmp_path: Path, channel: str) -> None:
    text = written(PRINTER + "{channel} x{channel}y", tmp_path, Job("r1", Order(channel, 10, 3), 900))
    assert run(text, tmp_path).returncode == 0
    assert called(tmp_path) == [channel, f"x{channel}y"]
    assert not (tmp_path / "injected").exists()
    plain = written(PRINTER + "{channel} x{channel}y", tmp_path)
    assert text.splitlines()[0:9] == plain.splitlines()[0:9]
    assert len(text.split("\n")) == len(plain.split("\n"))


@pytest.mark.parametrize("name", ["two words", "$(touch injected)", "quote'", "line\nend", "percent%j"])
def test_a_hostile_directory_stays_a_directory(tmp_path: Path, name: str) -> None:
    directory = tmp_path / name
    assert run(written(PRINTER, directory), tmp_path).returncode == 0
    assert called(directory) == []
    assert not (tmp_path / "injected").exists()


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0")))
def test_a_word_is_quoted_in_one_line(text: str) -> None:
    word = quoted(text)
    assert not {"\n", "\r"} & set(word)
    done = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, check=True)
    assert done.stdout.decode() == text


@pytest.mark.parametrize("request_id", ["a\nb", "../up", "a b", "a;b", "$(id)", "", "-a", "x" * 65, "."])
def test_a_request_id_that_names_no_job_is_refused(request_id: str) -> None:
    with pytest.raises(RunnerRefused, match="cannot name a job"):
        written("x {output}", Path("/shared"), replace(JOB, request_id=request_id))


@pytest.mark.parametrize("value", ["a\n#SBATCH --uid=0", "a b", "$(id)", "'", '"', "-x", "a;b", "é", "a\n"])
@pytest.mark.parametrize("option", ["partition", "account", "qos", "constraint"])
def test_an_option_that_is_not_plain_is_refused(
    option: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"PLATFORM_SLURM_{option.upper()}", value)
    with pytest.raises(ConfigurationError, match=f"PLATFORM_SLURM_{option.upper()}"):
        settings.load()


def test_a_null_character_is_refused() -> None:
    with pytest.raises(RunnerRefused, match="null"):
        written("x {channel} {output}", Path("/shared"), Job("r1", Order("a\0b", 10, 3), 900))


def test_the_batch_system_is_asked_for_what_settings_say() -> None:
    allocation = Allocation("debug", "m1234", "regular", "cpu&ib", cpus=4, parts_per_node=32)
    command = PipelineCommand.parse("x {output}")
    text = script(JOB, parts(JOB, 4), command, PurePosixPath("/shared"), allocation)
    asked = {line for line in text.splitlines() if line.startswith("#SBATCH")}
    assert asked >= {
        "#SBATCH --job-name=collidium-r1",
        "#SBATCH --array=0-2",
        "#SBATCH --partition=debug",
        "#SBATCH --account=m1234",
        "#SBATCH --qos=regular",
        "#SBATCH --constraint=cpu&ib",
        "#SBATCH --cpus-per-task=4",
    }
    assert "#SBATCH --exclusive" not in asked


def test_the_time_limit_is_that_of_the_longest_part_and_a_margin() -> None:
    job = replace(JOB, node_seconds=36_000)
    # Four of ten events: 240 minutes, twice that, and a quarter of an hour to begin with.
    assert minutes(job, parts(job, 4)) == 495
    assert minutes(job, parts(job, 4), parts_per_node=2) == 975


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("x {output} {user}", "no placeholder {user}"),
        ("x {output} {seed!r}", "no placeholder"),
        ("x {output} {seed:5}", "no placeholder"),
        ("x {output} {}", "no placeholder"),
        ("x {output} {channel.__class__}", "no placeholder"),
        ("x {output", "expected '}'"),
        ("x 'unclosed {output}", "No closing quotation"),
        ("x --seed {seed}", "{output} is missing"),
        ("", "{output} is missing"),
    ],
)
def test_a_command_that_cannot_be_filled_in_is_refused(command: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match="PLATFORM_PIPELINE_COMMAND") as error:
        PipelineCommand.parse(command)
    assert problem in str(error.value)


def test_the_command_for_a_program_started_without_a_shell() -> None:
    command = PipelineCommand.parse("run '--channel {channel}' {{x}} {output} ''")
    values = {"channel": "$(id)\n", "output": Path("/o p")}
    assert command.arguments(values) == ["run", "--channel $(id)\n", "{x}", "/o p", ""]


def record(directory: Path, task: str) -> dict[str, int]:
    status: dict[str, int] = json.loads((directory / "r1" / "status" / task).read_text())
    return status


@pytest.mark.parametrize(("succeeds", "code", "calls"), [(1, 0, 1), (2, 0, 2), (3, 0, 3), (9, 3, 3)])
def test_a_part_that_fails_is_simulated_again(tmp_path: Path, succeeds: int, code: int, calls: int) -> None:
    counted = tmp_path / "calls"
    count = f"echo >>{counted}; calls=$(wc -l <{counted}); echo x >$1/$calls.parquet"
    command = f"sh -c '{count}; [ $calls -ge {succeeds} ] || exit 3' sh {{output}}"
    assert run(written(command, tmp_path), tmp_path).returncode == code
    assert len(counted.read_text().splitlines()) == calls
    assert record(tmp_path, "7_0")["exit_code"] == code
    whole = tmp_path / "r1" / "0"
    made = {path.name for path in whole.iterdir()} if whole.exists() else set()
    assert made == ({f"{calls}.parquet", MANIFEST} if code == 0 else set())


def test_the_manifest_has_the_checksum_of_each_table(tmp_path: Path) -> None:
    tables = "for table in hits tracks; do echo $table >$1/$table.parquet; done; echo >$1/log.txt"
    assert run(written(f"sh -c '{tables}' sh {{output}}", tmp_path), tmp_path).returncode == 0
    assert parse_manifest((tmp_path / "r1/0" / MANIFEST).read_text()) == {
        f"{table}.parquet": sha256(f"{table}\n".encode()).hexdigest() for table in ("hits", "tracks")
    }


def test_a_failed_task_leaves_a_record_and_no_output(tmp_path: Path) -> None:
    text = written("sh -c 'echo half >\"$1/half\"; echo ended; exit 3' sh {output}", tmp_path)
    assert run(text, tmp_path, 1).returncode == 3
    assert record(tmp_path, "7_1")["exit_code"] == 3
    left = {path.name for path in (tmp_path / "r1").iterdir()}
    assert left == {"status", "log", "progress"}
    assert "ended\n" in (tmp_path / "r1" / "log" / "7_1").read_text()


def test_a_task_that_runs_again_takes_over_what_is_whole(tmp_path: Path) -> None:
    assert run(written(PRINTER + "first", tmp_path), tmp_path).returncode == 0
    assert run(written("false {output}", tmp_path), tmp_path, job_id=8).returncode == 0
    assert called(tmp_path) == ["first"]
    assert record(tmp_path, "7_0")["exit_code"] == record(tmp_path, "8_0")["exit_code"] == 0


def test_a_record_has_start_and_end_times(tmp_path: Path) -> None:
    run(written("true {output}", tmp_path), tmp_path)
    status = record(tmp_path, "7_0")
    assert status["began"] <= status["ended"]
