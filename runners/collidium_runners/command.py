"""The pipeline's command with its placeholders, the names of jobs, and the progress that commands report.

Commands write their progress to ``COLLIDIUM_PROGRESS_FILE``, which is untrusted input.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from string import Formatter
from typing import Final, Self

import msgspec

from collidium.contracts.runner import Job, JobProgress, RunnerRefused
from collidium.errors import ConfigurationError
from collidium.files import untrusted
from collidium.order import ORDER_FIELDS
from collidium.runtime.logs import single_line

#: The placeholders of commands.
PLACEHOLDERS: Final = (*(field.name for field in ORDER_FIELDS), "first_event", "output", "request_id")

_LINE_ENDS: Final = {"\n": "\\n", "\r": "\\r"}

#: Request ids that can name files, containers and jobs of a batch system.
REQUEST_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)

#: Text, and the placeholder that follows it, if any.
Segment = tuple[str, str | None]

#: Name of the progress file.
NAME: Final = "progress.json"
#: Maximum size of a progress file, and of plausible numbers in it.
_LONGEST: Final = 4096
_STAGES: Final = 1000
_SECONDS: Final = 1e9


@dataclass(frozen=True, slots=True)
class PipelineCommand:
    """The words of a command, each split into segments."""

    words: tuple[tuple[Segment, ...], ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Split a command as a shell would.

        Raises :class:`~collidium.errors.ConfigurationError` for invalid quoting, an unknown placeholder, and
        a command without ``{output}``.
        """
        try:
            words = tuple(tuple(_segments(word)) for word in shlex.split(text))
        except ValueError as error:
            raise ConfigurationError(f"PLATFORM_PIPELINE_COMMAND: {error}") from None
        if not any(name == "output" for word in words for _, name in word):
            raise ConfigurationError("PLATFORM_PIPELINE_COMMAND: {output} is missing")
        return cls(words)

    @property
    def program(self) -> str:
        """The first word, without placeholders."""
        return "".join(text for text, _ in self.words[0])

    def arguments(self, values: Mapping[str, object]) -> list[str]:
        """Return the words with all placeholders filled in, for a program started without a shell."""
        return [
            "".join(text + ("" if name is None else str(values[name])) for text, name in word)
            for word in self.words
        ]

    def of_job(self, job: Job, output: str) -> list[str]:
        """Return the words for a job in a single part."""
        return self.arguments(
            job.order.parameters | {"first_event": 0, "output": output, "request_id": job.request_id}
        )

    def shell(self, values: Mapping[str, object], variables: Mapping[str, str]) -> str:
        """Return the command for a shell: values are quoted, ``variables`` become shell variables."""

        def filled(text: str, name: str | None) -> str:
            before = quoted(text) if text else ""
            if name is None:
                return before
            if name in variables:
                return f'{before}"${{{variables[name]}}}"'
            return before + quoted(str(values[name]))

        return " ".join("".join(filled(*segment) for segment in word) or "''" for word in self.words)


def job_name(request_id: str) -> str:
    """Return the name of a request's job. Raises RunnerRefused for an id that cannot name one."""
    if not REQUEST_ID.fullmatch(request_id):
        raise RunnerRefused(f"{request_id[:200]!r} cannot name a job")
    return f"collidium-{request_id}"


def quoted(text: str) -> str:
    """Quote one word for bash, on one line."""
    word = shlex.quote(text)
    for character, escape in _LINE_ENDS.items():
        word = word.replace(character, f"'$'{escape}''")
    return word


def _segments(word: str) -> list[Segment]:
    segments: list[Segment] = []
    for text, name, form, conversion in Formatter().parse(word):
        if name is not None and (name not in PLACEHOLDERS or form or conversion):
            known = ", ".join(f"{{{known}}}" for known in PLACEHOLDERS)
            raise ValueError(f"there is no placeholder {{{name}}} (there are: {known})")
        segments.append((text, name))
    return segments


def parse_progress(text: str | bytes) -> JobProgress | None:
    """Return the progress of a job or a part; None for invalid input."""
    try:
        found = msgspec.json.decode(text, type=JobProgress)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return None
    counted = 1 <= found.stage <= found.stages <= _STAGES
    if not (counted and 0 <= found.fraction <= 1 and 0 <= (found.seconds_left or 0) < _SECONDS):
        return None
    return replace(found, title=single_line(found.title))


def read_progress(file: Path) -> JobProgress | None:
    """Return the progress in a file; None also for anything else that a job may put there, such as a pipe."""
    try:
        return parse_progress(untrusted.read(file, _LONGEST))
    except OSError:
        return None


def job_progress(parts: Iterable[JobProgress | None], of: int) -> JobProgress | None:
    """Combine the progress of the parts that have started to that of a job with ``of`` parts."""
    known = [part for part in parts if part is not None]
    if of == 1 or not known:
        return next(iter(known), None)
    done = [(part.stage - 1 + part.fraction) / part.stages for part in known]
    return JobProgress(1, 1, f"{done.count(1.0)} of {of} parts done", min(sum(done) / of, 1.0))
