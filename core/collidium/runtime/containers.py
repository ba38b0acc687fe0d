"""Container engines, docker and podman, used through their command lines. All calls block."""

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
#: Seconds that a container has to stop before it is killed.
STOP_SECONDS: Final = 2

_COMMAND_SECONDS: Final = 60
_PROBE_SECONDS: Final = 10
_LOG_LINES: Final = 20
_MISSING: Final = re.compile("no such (object|container)", re.IGNORECASE)
#: Templates of ``info`` that show whether an engine is rootless, and the sign of it. A program called docker
#: may be podman, so both are tried.
_ROOTLESS: Final = {
    "rootless={{.Host.Security.Rootless}}": "rootless=true",
    "{{json .SecurityOptions}}": "name=rootless",
}


class EngineError(Exception):
    """The output of a failed engine, for operators."""


class EngineUnavailable(RunnerUnavailable):
    """No engine responds. A runner may pass this error on."""


class EngineRefused(RunnerRefused):
    """The engine rejected a command. A runner may pass this error on."""


@dataclass(frozen=True, slots=True)
class Engine:
    """An engine that responded."""

    program: str
    #: Whether it runs as this account, which is root in its containers.
    rootless: bool

    @classmethod
    def probe(cls, program: str) -> Engine:
        """Return the engine behind a client. Raises :class:`EngineUnavailable` if none responds."""
        if shutil.which(program) is None:
            raise EngineUnavailable(f"{program} is not installed")
        _require_response(program)
        for template, sign in _ROOTLESS.items():
            done = _run([program, "info", "--format", template], _PROBE_SECONDS)
            if done.returncode == 0:
                return cls(program, sign in done.stdout)
        return cls(program, rootless=False)

    def has_image(self, image: str) -> bool:
        """Whether the image is on this machine."""
        try:
            self._command("image", "inspect", image)
        except EngineRefused:
            return False
        return True

    def fetching(self, image: str, containerfile: str | None) -> list[str]:
        """Return the command that builds an image from the folder of a Containerfile, or else pulls it."""
        if containerfile is None:
            return [self.program, "pull", image]
        return [self.program, "build", "--tag", image, containerfile]

    def create(self, options: Sequence[str], image: str, words: Sequence[str]) -> None:
        """Create a container without starting it. Raises EngineRefused also if its name is taken."""
        self._command("create", *options, image, *words)

    def start(self, name: str, directory: Path) -> None:
        """Start a created container. Its monitor may leave files in ``directory``."""
        self._command("start", name, cwd=directory)

    def stop(self, name: str) -> None:
        """Stop a container, by force if need be; do nothing if it has ended or does not exist."""
        try:
            self._command_if_exists("stop", "-t", str(STOP_SECONDS), name)
        except EngineRefused as error:
            raise EngineUnavailable("the job's container does not stop") from error

    def remove(self, name: str) -> None:
        """Remove a container, running or not; do nothing if it does not exist.

        Raises EngineRefused if it cannot be removed.
        """
        self._command_if_exists(*self.removing(name)[1:])

    def removing(self, name: str) -> list[str]:
        """Return the command that removes a container, running or not."""
        return [self.program, "rm", "--force", "--volumes", name]

    def inspect(self, names: Sequence[str]) -> dict[str, Container]:
        """Return the containers that exist, by name."""
        if not names:
            return {}
        done = _run([self.program, "inspect", "--type", "container", *names], _COMMAND_SECONDS)
        found = _containers(done.stdout)
        if not all(name in found or _is_missing(name, done.stderr) for name in names):
            raise _unavailable(self.program, done.stderr)
        return found

    def log(self, name: str) -> list[str]:
        """Return the last lines of a container's output, shortened."""
        done = _run([self.program, "logs", "--tail", str(_LOG_LINES), name], _COMMAND_SECONDS)
        if done.returncode:
            return []
        return [single_line(line) for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]

    def _command(self, *words: str, cwd: Path | None = None) -> None:
        done = _run([self.program, *words], _COMMAND_SECONDS, cwd)
        if done.returncode:
            _require_response(self.program)
            raise EngineRefused(f"{self.program} {words[0]}: {last_line(done.stderr)}")

    def _command_if_exists(self, *words: str) -> None:
        try:
            self._command(*words)
        except EngineRefused:
            if self.inspect(words[-1:]):
                raise


class Engines:
    """The engines of this machine. ``runtime`` names one, or is ``auto``: the first that responds."""

    def __init__(self, runtime: str) -> None:
        self._programs = PROGRAMS if runtime == "auto" else (runtime,)
        self._known: dict[str, Engine] = {}

    def choose(self) -> Engine:
        """Return the engine for new jobs. Raises :class:`EngineUnavailable` with the problem of each."""
        problems = []
        for program in self._programs:
            try:
                return self.get(program)
            except EngineUnavailable as error:
                problems.append(reason(error))
        raise EngineUnavailable("no container engine responds") from EngineError("; ".join(problems))

    def get(self, program: str) -> Engine:
        """Return the engine of an existing job, whatever the settings are now."""
        if program not in self._known:
            self._known[program] = Engine.probe(program)
        return self._known[program]


def reason(error: EngineUnavailable) -> str:
    """Return the message of an error with the output of the engine."""
    return f"{error}: {error.__cause__}" if error.__cause__ else str(error)


def _require_response(program: str) -> None:
    # Not `info`: some clients print it without an engine.
    done = _run([program, "ps", "--quiet"], _PROBE_SECONDS)
    if done.returncode:
        raise _unavailable(program, done.stderr)


def _unavailable(program: str, output: str) -> EngineUnavailable:
    error = EngineUnavailable(f"{program} does not respond")
    error.__cause__ = EngineError(last_line(output))
    return error


def _run(words: Sequence[str], seconds: float, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocesses.run(words, seconds, directory=cwd)
    except subprocess.TimeoutExpired:
        raise EngineUnavailable(f"{words[0]} {words[1]} did not respond within {seconds:.0f} s") from None
    except OSError as error:
        raise EngineUnavailable(f"{words[0]} cannot be run: {error.strerror}") from None


def _containers(text: str) -> dict[str, Container]:
    try:
        found: Iterable[ContainerState] = json.loads(text or "[]")
        return dict(container_of(one) for one in found)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise EngineUnavailable("the container engine's response is invalid") from error


def _is_missing(name: str, errors: str) -> bool:
    """Whether the engine reports that a container does not exist."""
    return any(_MISSING.search(line) and name in line for line in errors.splitlines())


#: States of containers that have ended, and of those that were created and do not run yet.
_OVER: Final = frozenset({"exited", "stopped", "dead"})
_NEW: Final = frozenset({"created", "configured", "initialized"})


@dataclass(frozen=True, slots=True)
class Container:
    """A snapshot of a container. Times are in seconds since 1970."""

    #: Whether it was created and does not run yet.
    is_new: bool
    #: Whether it has ended.
    is_over: bool
    #: 0 to 255; above 128 if a signal ended it.
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
    """The common fields of ``inspect`` of docker and podman."""

    Name: str
    State: _State


def container_of(found: ContainerState) -> tuple[str, Container]:
    """Return a container with its name. Raises ValueError, TypeError and KeyError for invalid input."""
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


#: Engines pass these variables on from their own environment; they may hold passwords.
_PROXIES: Final = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")


def confined(*, rootless: bool) -> list[str]:
    """Return options that give a container no network and no privileges, and its files to this account."""
    # In a rootless container this account is root.
    user = "0:0" if rootless else f"{os.getuid()}:{os.getgid()}"
    return [
        # Without an init, no process handles the stop signal.
        "--init",
        "--pull=never",
        "--network=none",
        f"--user={user}",
        "--cap-drop=all",
        "--security-opt=no-new-privileges",
        # SELinux lets no container use files with the labels of this account.
        "--security-opt=label=disable",
        *(f"--env={name}=" for proxy in _PROXIES for name in (proxy, proxy.upper())),
    ]


def bind(source: Path, target: str) -> str:
    """Return the option that mounts a folder. Raises ValueError for a path that engines cannot mount."""
    if set(str(source)) & set(',"\n'):
        raise ValueError("containers can mount no path with a comma or a quote")
    return f"--mount=type=bind,source={source},target={target}"


def options(words: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Return ``--option=word`` for each word of each option."""
    return (f"{option}={word}" for option, of in words.items() for word in of)
