"""Container engines, docker and podman, by their command lines: for simulations and for the container runner.

Everything here blocks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, TypedDict

from collidium.contracts.runner import RunnerRefused, RunnerUnavailable
from collidium.runtime import subprocesses
from collidium.runtime.logs import last_line, single_line

#: Tried in this order.
PROGRAMS: Final = ("docker", "podman")
#: Between the request to stop and the end by force.
STOP_SECONDS: Final = 2

_ANSWER_SECONDS: Final = 60
_PROBE_SECONDS: Final = 10
_LOG_LINES: Final = 20
_MISSING: Final = re.compile("no such (object|container)", re.IGNORECASE)
#: Templates that show whether an engine runs as an unprivileged account, and the text of that answer. A
#: program called docker may be podman, so both are asked.
_ROOTLESS: Final = {
    "rootless={{.Host.Security.Rootless}}": "rootless=true",
    "{{json .SecurityOptions}}": "name=rootless",
}


class EngineError(Exception):
    """What engines wrote as their error, or why there are none: for operators."""


class EngineUnavailable(RunnerUnavailable):
    """No engine answers; a runner may let it pass as it is."""


class EngineRefused(RunnerRefused):
    """The engine will not do this; a runner may let it pass as it is."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that answered."""

    program: str
    #: Whether it runs as this account, whom its containers know as root.
    rootless: bool

    @classmethod
    def probe(cls, program: str) -> Engine:
        """Ask it; raises :class:`EngineUnavailable` where no engine answers: a client alone is none."""
        if shutil.which(program) is None:
            raise EngineUnavailable(f"{program} is not installed")
        _require_answer(program)
        for template, sign in _ROOTLESS.items():
            answer = _run([program, "info", "--format", template], _PROBE_SECONDS)
            if answer.returncode == 0:
                return cls(program, sign in answer.stdout)
        return cls(program, rootless=False)

    def has_image(self, image: str) -> bool:
        """Whether the image is on this machine."""
        try:
            self._ask("image", "inspect", image)
        except EngineRefused:
            return False
        return True

    def fetching(self, image: str, containerfile: str | None) -> list[str]:
        """The command that gets an image: built from the Containerfile in a folder, else pulled."""
        if containerfile is None:
            return [self.program, "pull", image]
        return [self.program, "build", "--tag", image, containerfile]

    def create(self, options: Sequence[str], image: str, words: Sequence[str]) -> None:
        """Make a container that does not run yet; raises EngineRefused, too, when its name is taken."""
        self._ask("create", *options, image, *words)

    def start(self, name: str, directory: Path) -> None:
        """Start a container that was created; its monitor may leave files in ``directory``."""
        self._ask("start", name, cwd=directory)

    def stop(self, name: str) -> None:
        """End a container, by force if it must be; nothing happens when it has ended or is not there."""
        try:
            self._ask_if_there("stop", "-t", str(STOP_SECONDS), name)
        except EngineRefused as error:
            raise EngineUnavailable("the job's container does not stop") from error

    def remove(self, name: str) -> None:
        """Remove a container, running or not; nothing happens when it is not there.

        Raises EngineRefused when it stays.
        """
        self._ask_if_there("rm", "--force", "--volumes", name)

    def inspect(self, names: Sequence[str]) -> dict[str, Container]:
        """Those of the containers that there are, by name."""
        if not names:
            return {}
        answer = _run([self.program, "inspect", "--type", "container", *names], _ANSWER_SECONDS)
        found = _containers(answer.stdout)
        if not all(name in found or _is_missing(name, answer.stderr) for name in names):
            raise _silent(self.program, answer.stderr)
        return found

    def log(self, name: str) -> list[str]:
        """The last lines that a container wrote, each cut short."""
        answer = _run([self.program, "logs", "--tail", str(_LOG_LINES), name], _ANSWER_SECONDS)
        if answer.returncode:
            return []
        return [
            single_line(line) for line in f"{answer.stdout}\n{answer.stderr}".splitlines() if line.strip()
        ]

    def _ask(self, *words: str, cwd: Path | None = None) -> str:
        answer = _run([self.program, *words], _ANSWER_SECONDS, cwd)
        if answer.returncode == 0:
            return answer.stdout
        # Refused, or no engine answers.
        _require_answer(self.program)
        raise EngineRefused(f"{self.program} {words[0]}: {last_line(answer.stderr)}")

    def _ask_if_there(self, *words: str) -> None:
        try:
            self._ask(*words)
        except EngineRefused:
            if self.inspect(words[-1:]):
                raise


class Engines:
    """The engines of this machine; ``runtime`` is one of them, or ``auto``: the first that answers."""

    def __init__(self, runtime: str) -> None:
        self._programs = PROGRAMS if runtime == "auto" else (runtime,)
        self._known: dict[str, Engine] = {}

    def choose(self) -> Engine:
        """The engine of new jobs; raises :class:`EngineUnavailable` with the problem of each."""
        problems = []
        for program in self._programs:
            try:
                return self.get(program)
            except EngineUnavailable as error:
                problems.append(reason(error))
        raise EngineUnavailable("no container engine answers") from EngineError("; ".join(problems))

    def get(self, program: str) -> Engine:
        """The engine that a job was given to, whatever the settings are now."""
        if program not in self._known:
            self._known[program] = Engine.probe(program)
        return self._known[program]


def reason(error: EngineUnavailable) -> str:
    """Why an engine does not answer, with what it wrote itself."""
    return f"{error}: {error.__cause__}" if error.__cause__ else str(error)


def _require_answer(program: str) -> None:
    # Not `info`: some clients answer that without an engine.
    answer = _run([program, "ps", "--quiet"], _PROBE_SECONDS)
    if answer.returncode:
        raise _silent(program, answer.stderr)


def _silent(program: str, complaint: str) -> EngineUnavailable:
    """The error of an engine that does not answer, with what it wrote as its cause."""
    error = EngineUnavailable(f"{program} does not answer")
    error.__cause__ = EngineError(last_line(complaint))
    return error


def _run(words: Sequence[str], seconds: float, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocesses.run(words, seconds, directory=cwd)
    except subprocess.TimeoutExpired:
        raise EngineUnavailable(f"{words[0]} {words[1]} did not answer in {seconds:.0f} s") from None
    except OSError as error:
        raise EngineUnavailable(f"{words[0]} cannot be run: {error.strerror}") from None


def _containers(text: str) -> dict[str, Container]:
    try:
        found: Iterable[ContainerState] = json.loads(text or "[]")
        return dict(container_of(one) for one in found)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EngineUnavailable("the container engine answered nonsense") from error


def _is_missing(name: str, errors: str) -> bool:
    """Whether the engine reports that there is no such container."""
    return any(_MISSING.search(line) and name in line for line in errors.splitlines())


#: States of containers that will not run any more, and of those that were made and do not run yet.
_OVER: Final = frozenset({"exited", "stopped", "dead"})
_NEW: Final = frozenset({"created", "configured", "initialized"})


@dataclass(frozen=True, slots=True)
class Container:
    """A container, as seen once; times in seconds since 1970."""

    #: Whether it was made and does not run yet.
    is_new: bool
    #: Whether it will not run any more.
    is_over: bool
    #: 0 to 255; above 128: the signal that ended it.
    exit_code: int
    out_of_memory: bool
    started: float
    finished: float


class _State(TypedDict):
    Status: str
    ExitCode: int
    OOMKilled: bool
    StartedAt: str
    FinishedAt: str


class ContainerState(TypedDict):
    """What docker and podman agree on in the answer of ``inspect``."""

    Name: str
    State: _State


def container_of(found: ContainerState) -> tuple[str, Container]:
    """Return a container with its name; raises ValueError, TypeError or KeyError for anything else."""
    state = found["State"]
    status = state["Status"].lower()
    return found["Name"].lstrip("/"), Container(
        is_new=status in _NEW,
        is_over=status in _OVER,
        exit_code=int(state["ExitCode"]) % 256,
        out_of_memory=bool(state["OOMKilled"]),
        started=datetime.fromisoformat(state["StartedAt"]).timestamp(),
        finished=datetime.fromisoformat(state["FinishedAt"]).timestamp(),
    )


#: Engines hand these on from their own surroundings; an address in them may hold a password.
_PROXIES: Final = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")


def confined(*, rootless: bool) -> list[str]:
    """No network, no rights, never root outside; files that it makes belong to this account."""
    # An engine that runs as this account calls this account root.
    user = "0:0" if rootless else f"{os.getuid()}:{os.getgid()}"
    return [
        # Without an init no process handles the signal to stop.
        "--init",
        "--pull=never",
        "--network=none",
        f"--user={user}",
        "--cap-drop=all",
        # Folders of this account bear no label that SELinux would let a container use.
        "--security-opt=no-new-privileges",
        "--security-opt=label=disable",
        *(f"--env={name}=" for proxy in _PROXIES for name in (proxy, proxy.upper())),
    ]


def bind(source: Path, target: str) -> str:
    """A folder of this machine in a container. Raises ValueError for a path that engines cannot mount."""
    if set(str(source)) & set(',"\n'):
        raise ValueError("containers can mount no path with a comma or a quote")
    return f"--mount=type=bind,source={source},target={target}"


def options(words: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Each word with its option: ``--option=word``."""
    return (f"{option}={word}" for option, of in words.items() for word in of)
