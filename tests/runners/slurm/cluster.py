"""A throwaway Slurm: one node on loopback, up in a few seconds, gone afterwards.

All of it lies in a temporary directory: configuration, keys, sockets, state. Run as root, the controller
belongs to the user ``slurm``, ``munged`` to ``munge`` and the REST API to ``nobody``: it refuses root. Run
as another user, everything is theirs. Accounting is off, as on the smallest clusters. Debian's packages
``slurm-wlm``, ``slurmrestd``, ``munge`` and ``slurm-wlm-jwt-plugin`` bring the programs.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.needs import where
from tests.ports import free_ports

from collidium.testing.processes import ending_with_parent, wait_until

#: Job arrays of this cluster have fewer tasks than this.
MAX_ARRAY_SIZE = 1001

_HOST = socket.gethostname().partition(".")[0]
_PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
_CONFIGURATION = """\
ClusterName=collidium
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={slurm}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={directory}/munge/socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={directory}/jwt.key
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/state/pid
SlurmdPidFile={directory}/spool/pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MaxArraySize={max_array_size}
ReturnToService=2
MpiDefault=none
KillWait=2
SchedulerParameters=sched_interval=1,sched_min_interval=0,bf_interval=1,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=500 State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


@dataclass(slots=True)
class SlurmCluster:
    """A cluster of its own; a context manager. Jobs belong to the user who started it."""

    directory: Path = field(init=False)
    #: Where ``slurmrestd`` answers, without a path.
    url: str = field(init=False)
    _running: dict[str, subprocess.Popen[bytes]] = field(init=False, default_factory=dict)

    def __enter__(self) -> Self:
        # Not below pytest's directories: those are closed to other users, and too long for a socket.
        self.directory = Path(tempfile.mkdtemp(prefix="collidium-slurm-"))
        before = os.umask(0o022)  # MUNGE refuses directories that other users cannot enter
        try:
            self._start()
        except BaseException:  # also Ctrl-C leaves nothing running behind
            self._end()
            raise
        finally:
            os.umask(before)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    # -- for tests ------------------------------------------------------------------------------------

    @property
    def environment(self) -> dict[str, str]:
        """Variables with which Slurm's commands find this cluster."""
        return {"SLURM_CONF": str(self.directory / "slurm.conf"), "PATH": _PATH}

    @property
    def user(self) -> str:
        """Whose the jobs are."""
        return _caller()

    def token(self, seconds: int = 3600) -> str:
        """A JWT of :attr:`user`, good for so long."""
        answer = self.command("scontrol", "token", f"lifespan={seconds}", f"username={self.user}")
        return answer.strip().removeprefix("SLURM_JWT=")

    def command(self, program: str, *arguments: str) -> str:
        """What one of Slurm's commands prints; raises CalledProcessError when it fails."""
        done = subprocess.run(
            [where(program) or program, *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=60,
            check=True,
        )
        return done.stdout.decode()

    def stop_controller(self) -> None:
        """Stop the controller, which saves its state; jobs run on."""
        self._kill("slurmctld", signal.SIGTERM)

    def start_controller(self, *options: str) -> None:
        """Start it again with what it saved; with ``-c`` it has forgotten every job."""
        self._run("slurmctld", "-D", *options, user=_service_user("slurm"))
        self._wait("slurmctld", self._controller_answers)
        self._wait("slurmd", self._node_is_up)

    def lose_node(self) -> None:
        """Have the controller give the node up; scripts that run on it go on, cut off."""
        self._kill("slurmd", signal.SIGKILL)
        for step in self._steps():
            os.kill(step, signal.SIGKILL)
        self.command("scontrol", "update", f"nodename={_HOST}", "state=down", "reason=lost")

    def _steps(self) -> list[int]:
        """The processes that would report the end of a script."""
        ours = f"SLURM_CONF={self.directory}/".encode()
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                named = (process / "cmdline").read_bytes().startswith(b"slurmstepd: [")
                if named and ours in (process / "environ").read_bytes():
                    found.append(int(process.name))
        return found

    def restore_node(self) -> None:
        """Start the node's daemon again, and have the controller use it."""
        self._run("slurmd", "-D")
        self.command("scontrol", "update", f"nodename={_HOST}", "state=resume")
        self._wait("slurmd", self._node_is_up)
        # Or the message that ends what ran there would end what runs there next.
        self._wait("slurmctld", self._has_sent_all)

    # -- starting and ending --------------------------------------------------------------------------

    def _start(self) -> None:
        self.directory.chmod(0o755)
        slurm, munge = _service_user("slurm"), _service_user("munge")
        for name, owner in (("munge", munge), ("state", slurm), ("spool", _caller()), ("log", _caller())):
            (self.directory / name).mkdir(0o755)
            shutil.chown(self.directory / name, owner)
        self._write_key("munge/key", 128, munge)
        self._write_key("jwt.key", 32, slurm)
        controller_port, node_port, rest_port = free_ports(3)
        self.url = f"http://127.0.0.1:{rest_port}"
        configuration = _CONFIGURATION.format(
            directory=self.directory,
            host=_HOST,
            controller_port=controller_port,
            node_port=node_port,
            slurm=slurm,
            user=_caller(),
            max_array_size=MAX_ARRAY_SIZE,
        )
        (self.directory / "slurm.conf").write_text(configuration)
        self._start_munge(munge)
        self._run("slurmctld", "-D", user=slurm)
        self._run("slurmd", "-D")
        self._run(
            *("slurmrestd", "-a", "rest_auth/jwt", "-s", "openapi/v0.0.38", f"127.0.0.1:{rest_port}"),
            user=_service_user("nobody"),
            variables={"SLURM_JWT": "daemon"},
        )
        self._wait("slurmctld", self._controller_answers)
        self._wait("slurmd", self._node_is_up)
        self._wait("slurmrestd", lambda: _accepts_connections(rest_port))

    def _start_munge(self, user: str) -> None:
        home = self.directory / "munge"
        options = {"socket": "socket", "key-file": "key", "pid-file": "pid", "seed-file": "seed"}
        paths = [f"--{option}={home / name}" for option, name in options.items()]
        self._run("munged", "--foreground", *paths, f"--log-file={home / 'log'}", user=user)
        self._wait("munged", (home / "socket").exists)

    def _write_key(self, name: str, length: int, owner: str) -> None:
        path = self.directory / name
        path.write_bytes(secrets.token_bytes(length))
        path.chmod(0o600)
        shutil.chown(path, owner)

    def _run(
        self, program: str, *arguments: str, user: str | None = None, variables: dict[str, str] | None = None
    ) -> None:
        other = None if user in (None, _caller()) else user
        with (self.directory / "log" / program).open("ab") as log:
            self._running[program] = subprocess.Popen(
                ending_with_parent([where(program) or program, *arguments]),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.directory,
                env=self.environment | (variables or {}),
                user=other,
                group=None if other is None else pwd.getpwnam(other).pw_gid,
                extra_groups=None if other is None else [],
            )

    def _wait(self, program: str, condition: Callable[[], bool]) -> None:
        wait_until(condition, self._running[program], 30, lambda: self._log(program))

    def _log(self, program: str) -> str:
        return (self.directory / "log" / program).read_text(errors="replace")[-4000:]

    def _controller_answers(self) -> bool:
        return self._output("scontrol", "ping").count("is UP") == 1

    def _node_is_up(self) -> bool:
        return self._output("sinfo", "--noheader", "--format=%T").strip() in {"idle", "mixed", "allocated"}

    def _has_sent_all(self) -> bool:
        answer = self._output("sdiag")
        return "Agent count:          0" in answer and "Agent queue size:     0" in answer

    def _output(self, program: str, *arguments: str) -> str:
        try:
            return self.command(program, *arguments)
        except subprocess.CalledProcessError:
            return ""

    def _end(self) -> None:
        if "slurmd" in self._running and self._running["slurmctld"].poll() is None:
            self._end_jobs()
        for program in ("slurmrestd", "slurmctld", "slurmd", "munged"):
            if program in self._running:
                self._kill(program, signal.SIGTERM)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _end_jobs(self) -> None:
        """Jobs have no parent process: they would outlive the cluster."""
        self._output("scancel", f"--user={self.user}")
        self._wait("slurmctld", lambda: not self._output("squeue", "--noheader"))

    def _kill(self, program: str, how: signal.Signals) -> None:
        process = self._running[program]
        process.send_signal(how)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _caller() -> str:
    return pwd.getpwuid(os.geteuid()).pw_name


def _service_user(name: str) -> str:
    """The user that a service runs as: its own if root may choose, else the caller."""
    return name if os.geteuid() == 0 else _caller()


def _accepts_connections(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
