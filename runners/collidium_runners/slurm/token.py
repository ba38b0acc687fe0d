"""The JSON web token of the REST API: a file that is rewritten when the token is renewed."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Final

from collidium.contracts.runner import RunnerUnavailable
from collidium.errors import ConfigurationError

_TOKEN: Final = re.compile(r"[A-Za-z0-9_.=-]{1,8192}", re.ASCII)


class TokenFile:
    """Reads the token, again when the file has changed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read_as: tuple[int, int, int] | None = None
        self._token = ""

    async def read(self) -> str:
        """The token as it stands in the file now; raises RunnerUnavailable when there is none."""
        return await asyncio.to_thread(self._current)

    def _current(self) -> str:
        try:
            found = self._path.stat()
            version = (found.st_ino, found.st_mtime_ns, found.st_size)
            if version != self._read_as:
                self._token = _only_token(self._path.read_text())
                self._read_as = version
        except (OSError, ValueError) as error:
            # An error of decoding would show what stands in the file.
            why = error.strerror if isinstance(error, OSError) else "it holds no token"
            unread = ConfigurationError(f"PLATFORM_SLURM_TOKEN_FILE cannot be read: {why}")
            raise RunnerUnavailable("the platform has no token for the batch system") from unread
        return self._token


def _only_token(text: str) -> str:
    """``scontrol token`` prints ``SLURM_JWT=<token>``; both that and the token alone are taken."""
    token = text.strip().removeprefix("SLURM_JWT=")
    if not _TOKEN.fullmatch(token):
        raise ValueError
    return token
