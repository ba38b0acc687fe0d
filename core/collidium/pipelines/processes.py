"""Commands of stages: run with a log, a deadline and progress, on this machine or in containers of an engine.

All processes that a command starts end with it.
"""

from __future__ import annotations

import hashlib
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

from collidium.contracts.pipeline import SEED, Stage
from collidium.files import untrusted
from collidium.pipelines import launcher
from collidium.pipelines.production import CannotSimulate
from collidium.runtime.containers import Engine, EngineRefused, EngineUnavailable, bind, confined
from collidium.runtime.subprocesses import end

#: Seconds between SIGTERM and SIGKILL.
STOP_SECONDS: Final = 2.0
#: Seconds between two ticks while a command prints nothing.
TICK_SECONDS: Final = 0.25
#: Longer lines are split.
_LONGEST_LINE: Final = 64 * 1024
#: Maximum size of a log; further output is dropped.
_LOG_BYTES: Final = 64 * 1024**2
_TAIL_BYTES: Final = 64 * 1024
#: Number of reads before the next tick: 1 MiB in all, more than the 64 KiB that a pipe holds.
_CHUNKS: Final = 16

#: The working directory in a container.
_WORK: Final = "/simulation"
_TMP: Final = "/tmp"  # noqa: S108 -- the container's own
#: Maximum time of a container whose process was killed.
_LONGEST_SECONDS: Final = 7 * 86_400
#: Variables that native stages inherit: no tokens, and no URLs, which may contain passwords. COLLIDIUM_JOB
#: marks the processes of jobs of the runner ``local``.
_KEPT: Final = frozenset(
    {"COLLIDIUM_JOB", "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH", "TZ", "USER"}
    | {"VIRTUAL_ENV"}
)


class TimeIsOver(Exception):
    """The command was ended at its deadline."""


@dataclass(slots=True)
class Log:
    """The output of a command, without lines for which ``listen`` returns True."""

    file: IO[bytes]
    listen: Callable[[bytes], bool]
    _room: int = _LOG_BYTES
    _line: bytearray = field(default_factory=bytearray)

    def feed(self, chunk: bytes) -> None:
        """Add output. Raises OSError if the disk is full."""
        self._line += chunk
        while (end := self._line.find(b"\n") + 1) or len(self._line) > _LONGEST_LINE:
            line = bytes(self._line[: end or len(self._line)])
            del self._line[: len(line)]
            self._keep(line)

    def end(self) -> None:
        """Add the rest after the last line end."""
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
    removing: Sequence[str] = (),
) -> int:
    """Run a command; return its exit code, or 128 plus the number of a signal.

    ``tick`` is called several times a second. ``removing`` is a command for what it leaves if it is ended
    early. The command and its session are ended when this function ends, also by KeyboardInterrupt. Raises
    TimeIsOver at ``deadline``, on the clock ``time.monotonic``, and OSError for a command that cannot be
    started or a full disk.
    """
    process = subprocess.Popen(  # noqa: S603 -- a list of words, never a shell
        _ended_with_us(words, removing),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=directory,
        env=dict(environment),
        # An interrupt at the terminal reaches this process only, which ends the command.
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
    """Return the last lines of a log, without empty ones."""
    try:
        written = untrusted.tail(file, _TAIL_BYTES).decode(errors="replace")
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
    """Read output until the command has ended; other processes may keep the pipe open for longer."""
    os.set_blocking(pipe.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while True:
            ended = process.poll() is not None
            if not ended:
                selector.select(TICK_SECONDS)
            chunk = _drain(pipe, log)
            if ended:  # one drain reads more than a pipe holds
                return
            if chunk == b"":  # the pipe is closed, but the command still runs
                with suppress(subprocess.TimeoutExpired):
                    process.wait(TICK_SECONDS)
            tick()
            if deadline is not None and time.monotonic() >= deadline and process.poll() is None:
                raise TimeIsOver


def _drain(pipe: IO[bytes], log: Log) -> bytes | None:
    """Log what is in the pipe, up to a limit; return the last chunk."""
    chunk = None
    for _ in range(_CHUNKS):
        chunk = _read(pipe)
        if not chunk:
            break
        log.feed(chunk)
    return chunk


def _read(pipe: IO[bytes]) -> bytes | None:
    """Read from the pipe: empty at its end, None if there is nothing now."""
    try:
        return os.read(pipe.fileno(), 1 << 16)
    except BlockingIOError:
        return None


def _ended_with_us(words: Sequence[str], removing: Sequence[str]) -> list[str]:
    """Wrap a command so that the kernel ends it when this process is killed. Linux only."""
    if sys.platform != "linux":
        return list(words)
    parent, count = str(os.getpid()), str(len(removing))
    return [sys.executable, "-I", "-S", launcher.__file__, parent, count, *removing, *words]


@dataclass(frozen=True, slots=True)
class Native:
    """Runs stages on this machine."""

    #: As in ``--runtime``.
    name: str = "none"
    #: The Python for stages.
    python: str = sys.executable

    def seen(self, work: Path) -> str:
        """Return the working directory as commands see it."""
        return str(work)

    def command(self, stage: Stage, words: Sequence[str], work: Path, seconds: float | None) -> list[str]:
        """Return the command that runs a stage for at most ``seconds``."""
        return list(words)

    def removing(self, work: Path) -> list[str]:
        """Return the command that removes what a stage leaves if it is ended early: none is needed."""
        return []

    def environment(self, work: Path) -> Mapping[str, str]:
        """Return the environment of the command."""
        kept = {n: v for n, v in os.environ.items() if n in _KEPT or n.startswith(("LC_", "OMP_"))}
        return kept | {"TMPDIR": str(work / "tmp"), "PYTHONUNBUFFERED": "1"}

    def clear(self, work: Path) -> None:
        """End what an earlier run left running: nothing, as the kernel ends stages with their parent."""


@dataclass(frozen=True, slots=True)
class Containers:
    """Runs each stage in a container of an engine. All have the same name, so that only one exists."""

    engine: Engine
    python: str = "python3"

    @property
    def name(self) -> str:
        return self.engine.program

    def seen(self, work: Path) -> str:
        return _WORK

    def command(self, stage: Stage, words: Sequence[str], work: Path, seconds: float | None) -> list[str]:
        """Return the command. Raises CannotSimulate for a directory that cannot be mounted."""
        if stage.image is None:
            raise CannotSimulate(f"stage {stage.name} runs in no container: give --runtime none")
        try:
            mounts = [bind(work, _WORK), bind(work / "tmp", _TMP)]
        except ValueError as error:
            raise CannotSimulate(f"{work}: {error}; choose another --output") from None
        return [
            self.engine.program,
            "run",
            "--rm",
            f"--name={container_name(work)}",
            "--stop-timeout=1",
            *confined(rootless=self.engine.rootless),
            *self._longest(seconds),
            # Its output goes to this process.
            "--log-driver=none",
            f"--workdir={_WORK}",
            f"--env=HOME={_TMP}",
            "--env=PYTHONUNBUFFERED=1",
            f"--env={SEED}",  # from the environment of the engine's client
            *mounts,
            "--entrypoint=",
            stage.image,
            *words,
        ]

    def removing(self, work: Path) -> list[str]:
        return self.engine.removing(container_name(work))

    def environment(self, work: Path) -> Mapping[str, str]:
        return os.environ  # for the engine's client; containers do not get it

    def clear(self, work: Path) -> None:
        """Remove the container of an earlier run. Raises CannotSimulate if it cannot be removed."""
        try:
            self.engine.remove(container_name(work))
        except (EngineRefused, EngineUnavailable) as error:
            raise CannotSimulate(f"an old container cannot be removed: {error}") from error

    def _longest(self, seconds: float | None) -> list[str]:
        """Return the option by which podman itself ends containers, also those of killed processes."""
        if self.engine.program != "podman":
            return []
        return [f"--timeout={int(min(seconds or _LONGEST_SECONDS, _LONGEST_SECONDS)) + 60}"]


Runtime = Native | Containers


def container_name(work: Path) -> str:
    """Return the name of the containers for a working directory, the same in every run."""
    digest = hashlib.sha256(os.fsencode(work.resolve())).hexdigest()
    return f"collidium-simulate-{digest[:16]}"


def end_quietly(runtime: Runtime, work: Path) -> None:
    """End what is left running, ignoring errors, as the next run clears it, too."""
    with suppress(CannotSimulate):
        runtime.clear(work)
