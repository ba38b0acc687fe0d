"""What an engine tells of a container, and the options that ours are made with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Self, TypedDict

from collidium.contracts.runner import RunnerUnavailable
from collidium.errors import ConfigurationError

#: Where a container finds the folder for its output, and one for what it needs in between.
OUTPUT: Final = "/output"
SCRATCH: Final = "/tmp"  # noqa: S108 -- the container's own

_LOG_SIZE: Final = "10m"
_PROCESSES: Final = 4096
#: Engines hand these on from their own surroundings; an address in them may hold a password.
_PROXIES: Final = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")

#: States of containers that will not run any more, and of those that were made and do not run yet.
_OVER: Final = frozenset({"exited", "stopped", "dead"})
_NEW: Final = frozenset({"created", "configured", "initialized"})


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


@dataclass(frozen=True, slots=True)
class Container:
    """A container as its engine sees it; times in seconds since 1970."""

    name: str
    status: str
    exit_code: int
    out_of_memory: bool
    started: float
    finished: float

    @classmethod
    def parse(cls, told: ContainerState) -> Self:
        """Read one of the answers; raises ValueError, TypeError or KeyError for what is none."""
        state = told["State"]
        return cls(
            name=told["Name"].lstrip("/"),
            status=state["Status"].lower(),
            exit_code=int(state["ExitCode"]) % 256,
            out_of_memory=bool(state["OOMKilled"]),
            started=datetime.fromisoformat(state["StartedAt"]).timestamp(),
            finished=datetime.fromisoformat(state["FinishedAt"]).timestamp(),
        )

    @property
    def is_new(self) -> bool:
        return self.status in _NEW

    @property
    def is_over(self) -> bool:
        return self.status in _OVER


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one container may use; 0 CPUs: all of the machine's."""

    memory_bytes: int
    cpus: float


def options(name: str, allowance: Allowance, output: Path, scratch: Path, *, rootless: bool) -> list[str]:
    """Options of ``create``, the same for docker and podman.

    The container has no network, no rights, nothing of the server but the two folders, and is never root
    outside. Raises :class:`RunnerUnavailable` for folders that cannot be mounted.
    """
    # An engine that runs as this account calls this account root.
    user = "0:0" if rootless else f"{os.getuid()}:{os.getgid()}"
    words = {
        "--name": [name],
        "--label": ["collidium.job=1"],
        "--pull": ["never"],
        "--network": ["none"],
        "--user": [user],
        "--cap-drop": ["all"],
        # Folders of the server bear no label that SELinux would let a container use.
        "--security-opt": ["no-new-privileges", "label=disable"],
        "--pids-limit": [str(_PROCESSES)],
        # As much with swap as without: no swap.
        "--memory": [str(allowance.memory_bytes)],
        "--memory-swap": [str(allowance.memory_bytes)],
        "--cpus": [f"{allowance.cpus:g}"] if allowance.cpus else [],
        "--log-driver": ["json-file"],
        "--log-opt": [f"max-size={_LOG_SIZE}"],
        "--workdir": [SCRATCH],
        "--mount": [_bind(output, OUTPUT), _bind(scratch, SCRATCH)],
        "--env": [f"HOME={SCRATCH}", f"TMPDIR={SCRATCH}", *_no_proxies()],
    }
    # Without an init nobody heeds the signal to stop.
    return ["--init", "--read-only", *(f"{option}={word}" for option, of in words.items() for word in of)]


def _bind(source: Path, target: str) -> str:
    if set(str(source)) & set(',"\n'):
        wrong = ConfigurationError("PLATFORM_DATA_DIR: containers can mount no path with a comma or a quote")
        raise RunnerUnavailable("the job's folders cannot be mounted") from wrong
    return f"type=bind,source={source},target={target}"


def _no_proxies() -> list[str]:
    return [f"{name}=" for proxy in _PROXIES for name in (proxy, proxy.upper())]
