"""``pytest --collidium-task``: the suite as tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.distributions import install

FORGETS = """
from collidium.hookspecs import hookimpl
from collidium_tasks.tracking import TrackingTask
from dataclasses import replace

class Forgets(TrackingTask):
    card = replace(TrackingTask.card, name="forgets")

    def check(self, block):
        return super().check(block)[:1]

@hookimpl
def collidium_tasks():
    return [Forgets()]
"""

#: Starting pytest without everybody else's plugins takes a fraction of the time.
ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
BY_NAME = ("-p", "collidium.testing.task_option")


@pytest.fixture
def site(tmp_path: Path, isolated_environment: dict[str, str]) -> Path:
    isolated_environment["PYTHONPATH"] = str(tmp_path / "site")
    return tmp_path / "site"


def run_pytest(
    tmp_path: Path, environment: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    (tmp_path / "test_mine.py").write_text("def test_mine(): pass\n")
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120
    )


def test_each_promise_is_a_test_and_a_broken_one_fails_readably(
    site: Path, tmp_path: Path, isolated_environment: dict[str, str]
) -> None:
    install(site, "forgets", {"forgets_task": FORGETS})
    done = run_pytest(
        tmp_path, isolated_environment, "--collidium-task", "forgets", "-k", "problems or mine or card"
    )
    assert done.returncode == 1, done.stdout
    assert "collidium-task[forgets]::card_is_complete PASSED" in done.stdout
    assert "collidium-task[forgets]::problems_are_reported_together FAILED" in done.stdout
    assert "check must report all problems at once; where" in done.stdout
    assert "test_mine" not in done.stdout


def test_the_suite_runs_with_the_paths_that_are_given(
    tmp_path: Path, isolated_environment: dict[str, str]
) -> None:
    chosen = ("test_mine.py", "--collidium-task", "tracking", "-k", "mine or card")
    done = run_pytest(tmp_path, isolated_environment | ALONE, *chosen, *BY_NAME)
    assert "2 passed" in done.stdout, done.stdout


def test_an_unknown_task_is_a_usage_error(tmp_path: Path, isolated_environment: dict[str, str]) -> None:
    done = run_pytest(tmp_path, isolated_environment | ALONE, "--collidium-task", "nowhere", *BY_NAME)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no installed plugin provides a task 'nowhere'" in done.stderr
