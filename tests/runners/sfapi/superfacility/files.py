"""The machine's files and login shell, as ``/utilities`` shows them."""

from __future__ import annotations

import base64
import os
import stat
import subprocess
import time
from email import message_from_bytes
from email.policy import HTTP
from pathlib import Path
from typing import Any

Document = dict[str, Any]


class Files:
    """Files by absolute paths; commands run in ``root``."""

    def __init__(self, root: Path, download_limit: int) -> None:
        self._root = root
        self._download_limit = download_limit

    def ls(self, path: str) -> Document:
        """A directory's entries with ``.`` and ``..``, or the one of a file, named by its path."""
        try:
            found = _absolute(path)
            if not found.is_dir():
                return _ok(entries=[_entry(found, f"/{found}")])
            named = [(".", found), ("..", found.parent)]
            named += [(entry.name, entry) for entry in sorted(found.iterdir())]
            return _ok(entries=[_entry(entry, name) for name, entry in named])
        except OSError as error:
            return _error(f"ls: cannot access '{path}': {error.strerror}", entries=[])

    def download(self, path: str, binary: bool) -> Document:
        """A small file's content, as text or in base64."""
        try:
            found = _absolute(path)
            if found.stat().st_size > self._download_limit:
                return _error(f"{path} is larger than {self._download_limit} bytes")
            content = found.read_bytes()
            text = base64.b64encode(content).decode() if binary else content.decode()
            return _ok(file=text, is_binary=binary)
        except OSError as error:
            return _error(f"{path}: {error.strerror}")
        except UnicodeDecodeError:
            return _error(f"{path} is not text")

    def upload(self, path: str, content_type: str, body: bytes) -> Document:
        """Write the part ``file`` of a form to ``path``."""
        form = message_from_bytes(f"Content-Type: {content_type}\r\n\r\n".encode() + body, policy=HTTP)
        for part in form.iter_parts():
            content = part.get_payload(decode=True)
            if part.get_param("name", header="content-disposition") == "file" and isinstance(content, bytes):
                try:
                    _absolute(path).write_bytes(content)
                except OSError as error:
                    return _error(f"{path}: {error.strerror}")
                return _ok(output=None)
        return _error("the form has no file")

    def command(self, executable: str) -> Document:
        """What became of a command of the login shell."""
        done = subprocess.run(
            ["/bin/bash", "-c", executable],
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            cwd=self._root,
            timeout=60,
        )
        status = "error" if done.returncode else "ok"
        return {"status": status, "output": done.stdout, "error": done.stderr if done.returncode else None}


def _absolute(path: str) -> Path:
    return Path(os.path.normpath("/" + path.lstrip("/")))


def _entry(path: Path, name: str) -> Document:
    status = path.stat(follow_symlinks=False)
    return {
        "perms": stat.filemode(status.st_mode),
        "hardlinks": status.st_nlink,
        "user": "tester",
        "group": "tester",
        "size": float(status.st_size),
        "date": time.strftime("%b %d %H:%M", time.localtime(status.st_mtime)),
        "name": name,
    }


def _ok(**fields: object) -> Document:
    return {"status": "OK", **fields, "error": None}


def _error(message: str, **fields: object) -> Document:
    return {"status": "ERROR", **fields, "error": message}
