"""Receives one file of a repository: goes on where it stopped, checks the whole, asks twice at the most."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Final

from collidium.errors import UnusableDataset, UpstreamError
from collidium.hub.reader import HubReader, Passing

if TYPE_CHECKING:
    from hashlib import _Hash

    import httpx

    from collidium.hub.repository import HubFile, Repository

_BLOCK: Final = 1024**2

#: Told how many bytes have come; negative when they have to come again.
Received = Callable[[int], None]


class Stopped(Exception):
    """Nobody wants the file any more."""


class Transfer:
    """Brings a part to the whole, checked content of a file."""

    def __init__(
        self, hub: HubReader, repository: Repository, file: HubFile, part: IO[bytes], received: Received
    ) -> None:
        self._hub = hub
        self._repository = repository
        self._file = file
        self._part = part
        self._received = received
        self._have = 0
        self._hash: _Hash = file.content.hasher()

    def run(self) -> None:
        """Receive what is missing. Raises UnusableDataset where the hub gives other content twice, Stopped,
        OSError where the disk fails, and what :class:`HubReader` raises."""
        self._take_what_is_there()
        # The first attempt may stand on a part that was damaged: then the second one still has a third.
        for _ in range(3 if self._have else 2):
            self._append()
            if self._have == self._file.size and self._hash.hexdigest() == self._file.content.digest:
                return
            self._start_over()
        raise UnusableDataset(
            f"{self._file.path} of {self._repository.repo} is damaged on {self._repository.endpoint}: its "
            "content was fetched twice and is not what the hub says it is"
        )

    def _take_what_is_there(self) -> None:
        self._part.seek(0)
        while block := self._part.read(_BLOCK):
            self._hash.update(block)
            self._have += len(block)
        if self._have > self._file.size:
            self._start_over()
        self._received(self._have)

    def _start_over(self) -> None:
        self._part.truncate(0)
        self._received(-self._have)
        self._have = 0
        self._hash = self._file.content.hasher()

    def _append(self) -> None:
        """Receive up to the file's size, in as many attempts as bring something, and some that do not."""
        attempts = 0
        while self._have < self._file.size:
            before = self._have
            try:
                if not self._attempt():
                    return
            except Passing as passing:
                attempts = attempts + 1 if self._have <= before else 1
                self._hub.pause(passing, attempts)

    def _attempt(self) -> bool:
        """Receive what one answer has; False if it is not the file's content for sure."""
        asked = f"{self._have}-" if self._have else ""
        address = self._repository.address(self._file.path)
        with self._hub.open(address, self._file.path, byte_range=asked) as response:
            if asked and response.status_code != 206:
                # The hub does not give ranges.
                self._start_over()
            elif asked and not self._goes_on(response):
                raise UpstreamError(f"{self._repository.endpoint} gave another range than was asked for")
            for piece in response.iter_raw():
                if self._hub.stopped.is_set():
                    raise Stopped
                if self._have + len(piece) > self._file.size:
                    return False
                self._take(piece)
        return self._have == self._file.size

    def _goes_on(self, response: httpx.Response) -> bool:
        found = re.match(r"bytes (\d{1,18})-", response.headers.get("Content-Range", ""))
        return found is not None and int(found[1]) == self._have

    def _take(self, piece: bytes) -> None:
        written = self._part.write(piece)
        while written < len(piece):
            written += self._part.write(memoryview(piece)[written:])
        self._hash.update(piece)
        self._have += len(piece)
        self._received(len(piece))
