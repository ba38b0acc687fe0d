"""What tests need of the machine and pip does not bring: the one list, asked by the fixture ``needs``.

A test is left out for no other reason than that an entry of the list is missing here, and only unless
``COLLIDIUM_TEST_ALL=1``. What is there and does not work is a failure.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from collidium.runtime import confinement

#: The fixture: leaves the test out where the entry is missing.
Needs = Callable[[str], None]

#: Whether a missing entry fails tests instead of leaving them out.
ALL: Final = os.environ.get("COLLIDIUM_TEST_ALL") == "1"
#: A file to which each part of the suite adds the number of its tests, and why some were left out.
REPORT: Final = "COLLIDIUM_TEST_REPORT"
#: Maximum share of the tests that may be left out.
MAX_SHARE: Final = 0.15
#: Debian keeps some programs where accounts other than root do not look.
PATH: Final = f"{os.environ.get('PATH', os.defpath)}:/usr/local/sbin:/usr/sbin:/sbin:/usr/libexec/podman"


def where(program: str) -> str | None:
    """The path of a program; None if it is not installed."""
    return shutil.which(program, path=PATH)


@dataclass(frozen=True, slots=True)
class Need:
    """Programs and the Debian packages that have them, or what a kernel may refuse and its probe."""

    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    probe: Callable[[], bool] = lambda: True

    def missing(self) -> list[str]:
        """The programs that are not here; of a probe that fails, its name."""
        lacking = [program for program in self.programs if where(program) is None]
        return lacking or ([] if self.probe() else [self.probe.__name__.strip("_").replace("_", " ")])


def _landlock_of_the_kernel() -> bool:
    return sys.platform == "linux" and ctypes.CDLL(None).syscall(444, None, 0, 1) > 0


def _cgroups_for_this_user() -> bool:
    cgroup = confinement.make_cgroup("collidium-probe-", os.getpid()) if sys.platform == "linux" else None
    if cgroup is not None:
        cgroup.rmdir()
    return cgroup is not None


def _proc_and_subreapers_of_linux() -> bool:
    return sys.platform == "linux"


def _files_of_other_processes() -> bool:
    """Of those that keep secrets from others of their account, which root alone may look into."""
    return os.geteuid() == 0


def _a_peak_of_memory_that_can_be_reset() -> bool:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _user_namespaces() -> bool:
    """Containers without root need a range of ids, and a kernel that maps them."""
    probe = ["unshare", "--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return os.geteuid() == 0 or subprocess.run(probe, capture_output=True, check=False).returncode == 0


def _a_registry_of_npm() -> bool:
    npm = Path(sys.executable).with_name("npm")
    return subprocess.run([npm, "ping"], capture_output=True, check=False, timeout=60).returncode == 0


NEEDS: Final = {
    "slurm": Need(
        (
            *("munged", "slurmctld", "slurmd", "slurmrestd"),
            *("scontrol", "squeue", "scancel", "sinfo", "sbatch"),
        ),
        ("slurm-wlm", "slurmrestd", "munge", "slurm-wlm-jwt-plugin"),
    ),
    "podman": Need(
        (
            "podman",
            "busybox",
            "conmon",
            "catatonit",
            "runc",
            "newuidmap",
            "fuse-overlayfs",
            "slirp4netns",
        ),
        (
            *("podman", "busybox-static", "conmon", "catatonit", "runc"),
            *("uidmap", "fuse-overlayfs", "slirp4netns"),
        ),
        _user_namespaces,
    ),
    "chromium": Need(("chromium",), ("chromium",)),
    "tmux": Need(("tmux",), ("tmux",)),
    "promtool": Need(("promtool",), ("prometheus",)),
    "nginx": Need(("nginx",), ("nginx-light",)),
    "caddy": Need(("caddy",), ("caddy",)),
    "systemd": Need(("systemd-analyze",), ("systemd",)),
    "curl": Need(("curl",), ("curl",)),
    "process files": Need(probe=_files_of_other_processes),
    "peak memory": Need(probe=_a_peak_of_memory_that_can_be_reset),
    "landlock": Need(probe=_landlock_of_the_kernel),
    "cgroups": Need(probe=_cgroups_for_this_user),
    "linux": Need(probe=_proc_and_subreapers_of_linux),
    "npm": Need(probe=_a_registry_of_npm),
}

_missing = cache(lambda name: NEEDS[name].missing())
_REASON: Final = "needs {name}, and this machine lacks "


def require(name: str) -> None:
    """Leave the running test out if an entry of the list is missing here, or fail it if none may be."""
    if lacking := _missing(name):
        reason = _REASON.format(name=name) + ", ".join(lacking)
        if ALL:
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)


def left_out(reports: Iterable[pytest.TestReport]) -> list[str]:
    """The entry of the list for which each of these tests was skipped; raises ValueError for other skips."""
    names = []
    for report in reports:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        name = next((name for name in NEEDS if _REASON.format(name=name) in reason), None)
        if name is None:
            raise ValueError(f"{report.nodeid} was skipped for no entry of tests/needs.py: {reason}")
        names.append(name)
    return names


def summary(tests: int, left_out: Sequence[str]) -> tuple[str, bool]:
    """What the entries of ``left_out`` have cost a run of ``tests``, and whether that is little enough."""
    if not left_out:
        return "No test was left out.", True
    share = len(left_out) / tests
    names = sorted(set(left_out))
    missing = sorted({part for name in names for part in _missing(name)})
    packages = sorted({package for name in names for package in NEEDS[name].packages})
    lines = [f"{len(left_out)} of {tests} tests ({share:.1%}) were left out; not here: {', '.join(missing)}."]
    if packages:
        lines.append(f"apt-get install {' '.join(packages)}")
    if share > MAX_SHARE:
        lines.append(f"More than {MAX_SHARE:.0%} may not be left out.")
    return "\n".join(lines), share <= MAX_SHARE
