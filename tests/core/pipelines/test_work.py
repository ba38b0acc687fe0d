"""What a stage leaves is read in bounded time and memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from collidium.contracts.pipeline import Stage
from collidium.files import untrusted
from collidium.pipelines import processes, work
from collidium.pipelines.production import CannotSimulate
from collidium.pipelines.work import Work

STAGE = Stage(name="make", title="make", command=("true",), inputs=(), outputs=("made",))


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Work]:
    here = Work(tmp_path)
    with here.held():
        for folder in (here.place / "made", here.hidden / "stages", here.logs):
            folder.mkdir(parents=True)
        yield here


def test_a_pipe_in_place_of_a_record_is_none(here: Work) -> None:
    (here.place / "made" / "one").touch()
    here.finish(STAGE)
    assert here.is_finished(STAGE)
    for name in ("stages/make.json", "order.json", "finished.json"):
        (here.hidden / name).unlink(missing_ok=True)
        os.mkfifo(here.hidden / name)
    assert not here.is_finished(STAGE)
    assert (here.started, here.finished) == (None, None)


def test_a_pipe_in_place_of_a_log_is_replaced(here: Work) -> None:
    os.mkfifo(here.log(STAGE))
    assert processes.tail(here.log(STAGE), 3) == []
    with untrusted.new(here.log(STAGE)) as log:
        log.write(b"one\ntwo\n")
    assert processes.tail(here.log(STAGE), 1) == ["two"]


def test_pipes_and_links_are_no_output(here: Work) -> None:
    os.mkfifo(here.place / "made" / "pipe")
    (here.place / "made" / "link").symlink_to("/etc/passwd")
    with pytest.raises(CannotSimulate, match="left no made"):
        here.finish(STAGE)


def test_a_stage_may_not_leave_too_many_files(here: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MAX_NAMES", 3)
    for number in range(3):
        (here.place / "made" / str(number)).touch()
    here.finish(STAGE)
    (here.place / "made" / "3").touch()
    with pytest.raises(CannotSimulate, match="more than 3 files"):
        here.finish(STAGE)
