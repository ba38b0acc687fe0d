"""What commands of jobs write of their progress (``COLLIDIUM_PROGRESS_FILE``), which is untrusted input."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

import msgspec

from collidium.contracts.runner import JobProgress
from collidium.runtime.logs import single_line

#: The file in a folder of the job.
NAME: Final = "progress.json"
_LONGEST: Final = 4096
#: Limits of what makes sense.
_STAGES: Final = 1000
_SECONDS: Final = 1e9


def parse_progress(text: str | bytes) -> JobProgress | None:
    """Return the progress of a job or a part; None for nonsense."""
    try:
        found = msgspec.json.decode(text, type=JobProgress)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    counted = 1 <= found.stage <= found.stages <= _STAGES
    if not (counted and 0 <= found.fraction <= 1 and 0 <= (found.seconds_left or 0) < _SECONDS):
        return None
    return replace(found, title=single_line(found.title))


def read_progress(file: Path) -> JobProgress | None:
    """As :func:`parse_progress`, of a file; None for what a job may put in its place, such as a pipe."""
    try:
        with open(file, "rb", opener=_open_no_link) as opened:
            return parse_progress(opened.read(_LONGEST) or "")
    except OSError:
        return None


def _open_no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def job_progress(parts: Iterable[JobProgress | None], of: int) -> JobProgress | None:
    """Return the progress of a job of so many parts from that of those that have begun."""
    known = [part for part in parts if part is not None]
    if of == 1 or not known:
        return next(iter(known), None)
    done = [(part.stage - 1 + part.fraction) / part.stages for part in known]
    return JobProgress(1, 1, f"{done.count(1.0)} of {of} parts done", min(sum(done) / of, 1.0))
