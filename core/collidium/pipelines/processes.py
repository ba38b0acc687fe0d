"""Runs a command to its end, listens to it, and ends it with all that it started when it must not go on."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

from collidium.pipelines import launcher
from collidium.runtime.subprocesses import end

#: Between the request to stop and the end by force.
STOP_SECONDS: Final = 2.0
#: Between two looks at the time while a command is silent.
TICK_SECONDS: Final = 0.25
#: A line may have no end.
_LONGEST_LINE: Final = 64 * 1024
#: A command may write without end; what is beyond is lost.
_LOG_BYTES: Final = 64 * 1024**2
_TAIL_BYTES: Final = 64 * 1024
#: What is read before the next look at the time: 1 MiB, and a pipe holds 64 KiB.
_CHUNKS: Final = 16


class TimeIsOver(Exception):
    """The command was ended because its time was over."""


@dataclass(slots=True)
class Log:
    """What a command wrote, but for lines that ``listen`` takes."""

    file: IO[bytes]
    listen: Callable[[bytes], bool]
    _room: int = _LOG_BYTES
    _line: bytearray = field(default_factory=bytearray)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes; raises OSError where the disk is full."""
        self._line += chunk
        while (end := self._line.find(b"\n") + 1) or len(self._line) > _LONGEST_LINE:
            line = bytes(self._line[: end or len(self._line)])
            del self._line[: len(line)]
            self._keep(line)

    def end(self) -> None:
        """Take what stands after the last line end."""
        line, self._line = bytes(self._line), bytearray()
        self._keep(line)

    def _keep(self, line: bytes) -> None:
        if not line or self.listen(line.strip()):
            return
        self.file.write(line[: self._room])
        self._room = max(self._room - len(line), 0)


def run(
    words: Sequence[str],
    log: Log,
    *,
    directory: Path,
    environment: Mapping[str, str],
    tick: Callable[[], None],
    deadline: float | None,
) -> int:
    """Run a command; returns its exit code, above 128 for that of a signal.

    ``tick`` is called some times in a second. The command and all that it started in its session are ended
    when the call ends in whatever way, KeyboardInterrupt above all. Raises TimeIsOver at ``deadline``, on
    the clock of ``time.monotonic``, and OSError for a command that cannot be started or a full disk.
    """
    process = subprocess.Popen(  # noqa: S603 -- a list of words, never a shell
        _ended_with_us(words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=directory,
        env=dict(environment),
        # An interrupt at the terminal is for us, who end it.
        start_new_session=True,
    )
    assert process.stdout is not None  # noqa: S101 -- a pipe, see above
    try:
        with process.stdout as pipe:
            _listen(process, pipe, log, tick, deadline)
        log.end()
        code = process.wait()
    finally:
        end(process, STOP_SECONDS)
    return code if code >= 0 else 128 - code


def tail(file: Path, lines: int) -> list[str]:
    """The last lines of a log that are not empty."""
    try:
        with file.open("rb") as log:
            log.seek(max(log.seek(0, os.SEEK_END) - _TAIL_BYTES, 0))
            written = log.read().decode(errors="replace")
    except OSError:
        return []
    return [line.rstrip() for line in written.splitlines() if line.strip()][-lines:]


def _listen(
    process: subprocess.Popen[bytes],
    pipe: IO[bytes],
    log: Log,
    tick: Callable[[], None],
    deadline: float | None,
) -> None:
    """Until the command has ended and what it wrote is read; others may hold the pipe for longer."""
    os.set_blocking(pipe.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            if not ended:
                selector.select(TICK_SECONDS)
            chunk = _drain(pipe, log)
            if ended:  # a look takes more than a pipe holds
                return
            if chunk == b"":  # the other end is closed; the command still runs
                with suppress(subprocess.TimeoutExpired):
                    process.wait(TICK_SECONDS)
            tick()
            if deadline is not None and time.monotonic() >= deadline and process.poll() is None:
                raise TimeIsOver


def _drain(pipe: IO[bytes], log: Log) -> bytes | None:
    """Log what is in the pipe, or much of it; returns what the last look found."""
    chunk = None
    for _ in range(_CHUNKS):
        chunk = _read(pipe)
        if not chunk:
            break
        log.feed(chunk)
    return chunk


def _read(pipe: IO[bytes]) -> bytes | None:
    """What is in the pipe, empty at its end, None where there is nothing now."""
    try:
        return os.read(pipe.fileno(), 1 << 16)
    except BlockingIOError:
        return None


def _ended_with_us(words: Sequence[str]) -> list[str]:
    """The command as one that the kernel ends when we are killed, where it does such things."""
    if sys.platform != "linux":
        return list(words)
    return [sys.executable, "-I", "-S", launcher.__file__, str(os.getpid()), *words]
