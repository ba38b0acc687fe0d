"""Fetches the images that stages run in."""

from __future__ import annotations

import os

from collidium.pipelines import processes
from collidium.pipelines.choice import Choice, Note
from collidium.pipelines.errors import CannotSimulate, StageFailed
from collidium.pipelines.runtimes import Containers
from collidium.pipelines.work import Work
from collidium.runtime.text import one_line

_LAST_LINES = 6


def fetch(choice: Choice, work: Work, note: Note, deadline: float | None) -> None:
    """Let the engine pull or build what is missing; its log is ``logs/image.log``. Blocks.

    Raises StageFailed with the command to try by hand.
    """
    if not isinstance(choice.runtime, Containers):
        return
    for image in choice.missing:
        words = choice.runtime.engine.fetching(image, choice.pipeline.containerfile)
        command = " ".join(words)
        note(f"Fetching the image {image}, once; this may take long: {command}")
        work.logs.mkdir(exist_ok=True)
        path = work.logs / "image.log"
        try:
            with path.open("wb", buffering=0) as file:
                code = processes.run(
                    words,
                    processes.Log(file, lambda line: False),
                    directory=work.logs,
                    environment=os.environ,
                    tick=lambda: None,
                    deadline=deadline,
                )
        except processes.TimeIsOver:
            raise CannotSimulate(f"the time limit was over while image {image} was fetched") from None
        if code:
            raise StageFailed(
                f"the image {image} cannot be fetched; try by hand: {command}. The log is {path}; its end",
                errors=[{"detail": one_line(line)} for line in processes.tail(path, _LAST_LINES)],
            )
