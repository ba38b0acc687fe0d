"""Confinement of processes that read untrusted data, and cgroups that limit their memory. Linux only."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import resource
import signal
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from collidium.runtime.subprocesses import end_with_parent, hide_memory, prctl

_PR_CAPBSET_DROP: Final = 24
_PR_SET_NO_NEW_PRIVS: Final = 38
_CAPABILITY_VERSION: Final = 0x20080522
_CLONE_NEWIPC, _CLONE_NEWUSER, _CLONE_NEWNET = 0x08000000, 0x10000000, 0x40000000
_CGROUPS: Final = Path("/sys/fs/cgroup")
#: The user that root changes to, which owns no files.
_UNPRIVILEGED: Final = 65534
#: Address space for libraries, in addition to the memory limit.
_LIBRARIES: Final = 2 * 1024**3
#: The kind of a process's clock: CPU time of all its threads (clock_getcpuclockid(3)).
_PROCESS_CLOCK: Final = 2
#: Limits of a confined process: CPU time, and open files.
_CPU_SECONDS: Final = 6 * 3600
#: CPU time after the signal SIGXCPU, until SIGKILL, which the kernel sends at once if the limits are equal.
_GRACE_SECONDS: Final = 60
_FILES: Final = 16
_libc: Final = ctypes.CDLL(None, use_errno=True)


def confine(parent: int, core: int, memory: int) -> list[str]:
    """Drop all privileges that this process can drop; return what it can no longer reach."""
    end_with_parent(parent)
    confined = ["network"] if leave_network() else []
    os.sched_setaffinity(0, {core})
    if become_unprivileged():  # the kernel counts no processes of root
        confined.append("processes")
    end_with_parent(parent)  # again: a change of user resets it
    hide_memory()
    confined += leave_files()
    limit_resources(memory, _CPU_SECONDS, _FILES)
    drop_capabilities()
    if leave_calls():
        confined.append("calls")
    return confined


def drop_capabilities(*keep: int) -> None:
    """Drop all capabilities except ``keep``: with some, root could read the memory of other processes."""
    if sys.platform == "linux":
        for capability in range(64):
            if capability not in keep:
                prctl(_PR_CAPBSET_DROP, capability)
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
        sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable; then those from 32 on
        _libc.capget(header, sets)
        kept = sets[1] & sum(1 << capability for capability in keep)
        _libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept))


def leave_network() -> bool:
    """Move this single-threaded process to a network namespace without interfaces; return whether it did."""
    if sys.platform != "linux":
        return False
    own = _CLONE_NEWNET | _CLONE_NEWIPC
    return any(_libc.unshare(flags) == 0 for flags in (own, own | _CLONE_NEWUSER))


def become_unprivileged() -> bool:
    """Change from root to a user that owns nothing; return whether this process is not root."""
    with contextlib.suppress(OSError):  # a container may have no such user
        os.setgroups([])
        os.setresgid(_UNPRIVILEGED, _UNPRIVILEGED, _UNPRIVILEGED)
        os.setresuid(_UNPRIVILEGED, _UNPRIVILEGED, _UNPRIVILEGED)
    return os.geteuid() != 0


def limit_resources(memory_bytes: int, cpu_seconds: int, files: int) -> None:
    """Limit memory, time and open files; forbid writing files, dumping core and starting processes."""
    for kind, value in (
        (resource.RLIMIT_DATA, memory_bytes),
        (resource.RLIMIT_AS, memory_bytes + _LIBRARIES),
        (resource.RLIMIT_CPU, cpu_seconds + _GRACE_SECONDS),
        (resource.RLIMIT_NOFILE, files),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        limit = value if hard == resource.RLIM_INFINITY else min(value, hard)
        soft = min(cpu_seconds, limit) if kind == resource.RLIMIT_CPU else limit
        resource.setrlimit(kind, (soft, limit))


# -- files: landlock(7) -----------------------------------------------------------------------------------

_CREATE_RULESET, _RESTRICT_SELF = 444, 446
#: Number of rights to files by version of the interface; the versions that added ports, and signals.
_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 5: 16}
_PORTS_SINCE, _SCOPES_SINCE = 4, 6


def leave_files() -> Sequence[str]:
    """Forbid this process to open files, and on newer kernels ports and signals; return what is forbidden."""
    if sys.platform != "linux" or (version := _libc.syscall(_CREATE_RULESET, None, 0, 1)) < 1:
        return ()
    rights = max(number for since, number in _FILE_RIGHTS.items() if since <= version)
    ports, scopes = 3 * (version >= _PORTS_SINCE), 3 * (version >= _SCOPES_SINCE)
    attributes = struct.pack("<QQQ", (1 << rights) - 1, ports, scopes)
    ruleset = _libc.syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if ruleset < 0 or _libc.syscall(_RESTRICT_SELF, ruleset, 0) != 0:
        return ()
    os.close(ruleset)
    return "files", *(("ports",) if ports else ()), *(("signals",) if scopes else ())


# -- system calls: seccomp(2) -----------------------------------------------------------------------------

_PR_SET_SECCOMP, _FILTER, _ALLOW, _PERMISSION_DENIED = 22, 2, 0x7FFF0000, 0x00050001
_LOAD, _IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_MACHINES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
#: The system calls that a process needs to compute and to use its open sockets, numbered as in _MACHINES.
_CALLS: Final = """
    read 0 63  write 1 64  close 3 57  fstat 5 80  lseek 8 62  recvfrom 45 207  sendto 44 206
    mmap 9 222  mprotect 10 226  munmap 11 215  brk 12 214  mremap 25 216  madvise 28 233  futex 202 98
    rt_sigaction 13 134  rt_sigprocmask 14 135  rt_sigreturn 15 139  sigaltstack 131 132  exit 60 93
    exit_group 231 94  restart_syscall 219 128  clock_gettime 228 113  clock_getres 229 114
    gettimeofday 96 169  clock_nanosleep 230 115  sched_yield 24 124  sched_getaffinity 204 123
    getcpu 309 168  getpid 39 172  gettid 186 178  getppid 110 173  sysinfo 99 179
    uname 63 160  getrandom 318 278
"""


def leave_calls() -> bool:
    """Forbid this single-threaded process all system calls except ``_CALLS``; return whether it did.

    Landlock does not restrict Unix sockets and the resource limits of other processes of the same user, and
    before version 6 ioctl(2), with which data on a socket can signal any of them.
    """
    if sys.platform != "linux" or platform.machine() not in _MACHINES:
        return False
    machine = platform.machine()
    calls = [int(number) for number in _CALLS.split()[1 + list(_MACHINES).index(machine) :: 3]]
    rows = [
        (_LOAD, 0, 0, 4),  # the architecture: others number their calls differently
        (_IF_EQUAL, 0, len(calls) + 1, _MACHINES[machine]),
        (_LOAD, 0, 0, 0),
        *((_IF_EQUAL, len(calls) - place, 0, call) for place, call in enumerate(calls)),
        (_RETURN, 0, 0, _PERMISSION_DENIED),
        (_RETURN, 0, 0, _ALLOW),
    ]
    program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *row) for row in rows))
    header = struct.pack("HxxxxxxP", len(rows), ctypes.addressof(program))
    prctl(_PR_SET_NO_NEW_PRIVS, 1)
    return bool(_libc.prctl(_PR_SET_SECCOMP, _FILTER, header, 0, 0) == 0)


def kill(process: int) -> None:
    """Kill a process, if it exists and this process is permitted to."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)


# -- cgroups ----------------------------------------------------------------------------------------------


def cpu_seconds_of(process: int) -> float:
    """Return the CPU time of a process as the kernel accounts it. Raises OSError."""
    return time.clock_gettime_ns((~process << 3) | _PROCESS_CLOCK) / 1e9


def make_cgroup(prefix: str, supervisor: int) -> Path | None:
    """Create a memory cgroup, named after its supervisor's process id; None if that is not permitted."""
    try:
        parent = parent_cgroup()
        if parent is None:
            return None
        if (control := parent / "cgroup.subtree_control").exists():
            control.write_text("+memory")
        _sweep_cgroups(parent, prefix)
        cgroup = parent / f"{prefix}{supervisor}"
        cgroup.mkdir()
    except OSError:
        return None
    for file, value in (("memory.oom.group", "1"), ("memory.swap.max", "0")):
        if (cgroup / file).exists():
            (cgroup / file).write_text(value)
    return cgroup


def _sweep_cgroups(parent: Path, prefix: str) -> None:
    """Remove the cgroups of killed supervisors, and kill the processes in them."""
    for cgroup in parent.glob(f"{prefix}*"):
        if not Path("/proc", cgroup.name.removeprefix(prefix)).exists():
            with contextlib.suppress(OSError):  # its processes have not ended yet
                for process in map(int, (cgroup / "cgroup.procs").read_text().split()):
                    if process:  # 0 stands for a process of another container, and kill(0) is our own group
                        kill(process)
                cgroup.rmdir()


def parent_cgroup() -> Path | None:
    """Return the cgroup to create others in; None without a memory controller.

    Version 1: the cgroup of this process. Version 2: its parent, as only leaves may have processes.
    """
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return _CGROUPS / "memory" / path[1:]
        parent = (_CGROUPS / path[1:]).parent
        if not controllers and "memory" in (parent / "cgroup.controllers").read_text().split():
            return parent
    return None


@functools.lru_cache(1)
def limit_cgroup(cgroup: Path, size: int) -> None:
    """Limit the memory of all processes in a cgroup; repeating the last call does nothing."""
    for file in ("memory.max", "memory.limit_in_bytes"):
        if (cgroup / file).exists():
            with contextlib.suppress(OSError):  # version 1, if they use more
                (cgroup / file).write_text(str(size))


def has_run_out(cgroup: Path) -> bool:
    """Whether the kernel has killed a process of a cgroup because of the cgroup's own limit.

    Processes killed for lack of memory elsewhere count as ``oom_kill`` but not as ``oom``, which version 1
    does not have.
    """
    for file in ("memory.events", "memory.oom_control"):
        with contextlib.suppress(OSError):
            counts = dict(line.split() for line in (cgroup / file).read_text().splitlines())
            return counts.get("oom_kill", "0") != "0" and counts.get("oom", "1") != "0"
    return False


if __name__ == "__main__":
    sys.stdout.write(" ".join(confine(*map(int, sys.argv[1:]))) + "\n")
