"""What an engine tells of a container, and the options that ours are made with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, TypedDict

from collidium.contracts.runner import RunnerUnavailable
from collidium.errors import ConfigurationError
from collidium_runners.spool.engine import Run

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
#: The exit code that engines tell of a container whose end they did not see.
_UNSEEN: Final = 255


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


def run_of(told: ContainerState) -> tuple[str, Run]:
    """The container's name and how it is; raises ValueError, TypeError or KeyError for what tells neither."""
    state = told["State"]
    status, code = state["Status"].lower(), int(state["ExitCode"]) % 256
    return told["Name"].lstrip("/"), Run(
        is_new=status in _NEW,
        is_over=status in _OVER,
        exit_code=code,
        out_of_memory=bool(state["OOMKilled"]),
        started=datetime.fromisoformat(state["StartedAt"]).timestamp(),
        finished=datetime.fromisoformat(state["FinishedAt"]).timestamp(),
        doubt="or the machine was restarted" if code == _UNSEEN else "",
    )


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
