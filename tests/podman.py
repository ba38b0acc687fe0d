"""A podman of a test's own: images, containers and settings in a temporary directory, all gone afterwards.

Nothing is fetched: images are made of busybox and of files that the test brings.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Final, Self

from tests.needs import where

_BUSYBOX: Final = "bin/busybox"
_APPLETS: Final = (
    *("cat", "cp", "echo", "env", "id", "ls", "mkdir", "sh", "sleep", "tail", "test", "touch", "trap"),
)

#: No network, no systemd, limits that any machine allows, and never a registry.
_CONTAINERS_CONF: Final = """\
[containers]
default_ulimits = ["nofile=16384:16384", "nproc=8192:8192"]
netns = "none"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
pull_policy = "never"
tmp_dir = "{directory}/run"
"""
#: Plain copies: nothing is mounted that would have to be unmounted.
_STORAGE_CONF: Final = """\
[storage]
driver = "vfs"
graphroot = "{directory}/storage"
runroot = "{directory}/runroot"
"""


class Podman:
    """A podman with a storage of its own; a context manager that leaves nothing behind.

    A process with :attr:`environment` in its own talks to it. Its tests need the entry ``podman``.
    """

    def __init__(self) -> None:
        self._busybox = Path(where("busybox") or "busybox")
        self._podman = where("podman") or "podman"
        self.directory = Path(tempfile.mkdtemp(prefix="collidium-podman-"))
        files = {"containers.conf": _CONTAINERS_CONF, "storage.conf": _STORAGE_CONF}
        for name, text in files.items():
            (self.directory / name).write_text(text.format(directory=self.directory))
        self.environment: Mapping[str, str] = {
            "CONTAINERS_CONF": str(self.directory / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.directory / "storage.conf"),
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.run("rm", "--force", "--all", "--time", "0")
        finally:
            shutil.rmtree(self.directory)

    def run(self, *words: str, stdin: bytes = b"") -> str:
        """What podman answers; raises RuntimeError with what it complains of."""
        ran = subprocess.run(
            [self._podman, *words],
            input=stdin,
            capture_output=True,
            env=os.environ | self.environment,
            timeout=60,
            check=False,
        )
        if ran.returncode:
            raise RuntimeError(f"podman {words[0]}: {ran.stderr.decode(errors='replace').strip()}")
        return ran.stdout.decode()

    def make_image(self, name: str, files: Mapping[str, bytes], *changes: str) -> str:
        """Make an image of busybox, its shell and ``files`` (all executable); returns its full name.

        ``changes`` are lines of a Containerfile, for example ``USER 1234``.
        """
        full = f"localhost/{name}:latest"
        archive = _archive({_BUSYBOX: self._busybox.read_bytes(), **files})
        self.run("import", *(f"--change={line}" for line in changes), "-", full, stdin=archive)
        return full


def _archive(files: Mapping[str, bytes]) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        # Engines do not agree on the mode of folders that an archive only implies.
        for folder in sorted({str(parent) for name in files for parent in PurePosixPath(name).parents}):
            member = tarfile.TarInfo(folder)
            member.type, member.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(member)
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
        for applet in _APPLETS:
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    return target.getvalue()
