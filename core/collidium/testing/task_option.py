"""``pytest --collidium-task NAME``: the conformance suite of an installed task, one test for each promise.

It runs alone, or with the tests of given paths::

    pytest --collidium-task vertexing
    pytest --collidium-task jets --collidium-events DIR tests

pytest loads this module if the platform is installed, so it imports the suite only if the option is given.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collidium.testing.task_suite.suite import Check, Suite


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("collidium")
    group.addoption(
        "--collidium-task",
        action="append",
        default=[],
        metavar="NAME",
        help="run the conformance suite of this installed benchmark task; may be repeated",
    )
    group.addoption(
        "--collidium-events",
        type=Path,
        metavar="DIR",
        help="dataset on which tasks are checked (default: the five built-in events)",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--collidium-task") and config.args_source is not config.ArgsSource.ARGS:
        config.args = []


@pytest.hookimpl(tryfirst=True)  # so that -k and -m choose among the checks as well
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    for name in config.getoption("--collidium-task") or ():
        suite = _suite(name, config.getoption("--collidium-events"))
        task = _TaskNode.from_parent(session, name=name, suite=suite)
        checks = [*task.collect()]
        items.extend(checks)
        # Reported like pytest's own collectors, so that items are counted.
        config.hook.pytest_collectreport(report=pytest.CollectReport(task.nodeid, "passed", None, [*checks]))


def _suite(name: str, directory: Path | None) -> Suite:
    from collidium.errors import CollidiumError
    from collidium.testing.task_suite import installed_suite

    try:
        return installed_suite(name, directory=directory)
    except CollidiumError as error:
        raise pytest.UsageError(f"--collidium-task {name}: {error}") from error


class _TaskNode(pytest.Collector):
    """A task, whose checks share a suite."""

    def __init__(self, *, suite: Suite, **more: Any) -> None:
        super().__init__(nodeid=f"collidium-task[{more['name']}]", **more)
        self.suite = suite

    def collect(self) -> Iterator[pytest.Item]:
        for check in self.suite.checks:
            yield _CheckItem.from_parent(self, name=check.name, check=check, suite=self.suite)


class _CheckItem(pytest.Item):
    """One promise of a task."""

    def __init__(self, *, check: Check, suite: Suite, **more: Any) -> None:
        super().__init__(**more)
        self._check = check
        self._suite = suite

    def runtest(self) -> None:
        outcome = self._suite.outcome(self._check)
        if outcome.state == "not checked":
            pytest.skip(f"not checked: {outcome.detail}")
        if outcome.error is not None:
            raise outcome.error

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:
        """The broken promise, and the traceback within the task."""
        outcome = self._suite.outcome(self._check)
        text = f"{outcome.detail}\n\nThe promise: {self._check.promise}"
        return f"{text}\n\n{''.join(traceback.format_exception(outcome.raised))}" if outcome.raised else text

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, self.name
