"""``collidium task new``. The written package is tested where it is installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.core.cli.conftest import RunCommand

from collidium.errors import InvalidInput
from collidium.testing.task_template import default_directory, write_package

TAKEN = {"tracking": "collidium"}
BAD_NAMES = ["", "Vertex", "9lives", "two words", "vertex-ing", "a__b", "_a", "a_", "na\xefve", "../up"]


@pytest.mark.parametrize("name", [*BAD_NAMES, "v" * 65, "tracking"])
def test_a_bad_name_is_refused_and_nothing_is_written(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        write_package(name, tmp_path / "new", TAKEN)
    assert [problem["field"] for problem in refused.value.errors] == ["NAME"]
    assert list(tmp_path.iterdir()) == []


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "work").write_text("of weeks")
    with pytest.raises(InvalidInput) as refused:
        write_package("X" * 70, tmp_path / "mine", TAKEN)
    problems = [problem["detail"] for problem in refused.value.errors]
    assert len(problems) == 3
    assert problems[-1] == f"{tmp_path / 'mine'} exists already"
    assert (tmp_path / "mine" / "work").read_text() == "of weeks"


def test_a_directory_in_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there is no directory"):
        write_package("mine", tmp_path / "nowhere" / "mine", TAKEN)


def test_the_files_have_the_name_of_the_task(tmp_path: Path) -> None:
    files = write_package("primary_vertex", tmp_path / "here", {})
    assert str(default_directory("primary_vertex")) == "collidium-task-primary-vertex"
    text = {str(file.relative_to(tmp_path / "here")): file.read_text() for file in files}
    assert 'primary_vertex = "collidium_task_primary_vertex"' in text["pyproject.toml"]
    assert 'name="primary_vertex"' in text["collidium_task_primary_vertex/card.py"]
    assert "class PrimaryVertexTask(Task)" in text["collidium_task_primary_vertex/task.py"]
    assert [name for name, content in text.items() if "$" in content] == []


def test_the_command_writes_where_it_is_called(collidium: RunCommand, tmp_path: Path) -> None:
    done = collidium("task", "new", "mine", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["directory"] == "collidium-task-mine"
    assert (tmp_path / "collidium-task-mine" / "pyproject.toml").is_file()
    again = collidium("task", "new", "mine")
    assert again.returncode == 3
    assert "collidium-task-mine exists already" in again.stderr
