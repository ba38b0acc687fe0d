"""Downloads many files at once, each whole and checked or not at all."""

from __future__ import annotations

import queue
import shutil
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Final

from collidium.datasets.fetching.transfer import Stopped, Transfer
from collidium.errors import CollidiumError
from collidium.files.durable import is_full

if TYPE_CHECKING:
    from collidium.datasets.fetching.shelves import Shelf
    from collidium.hub.reader import HubReader
    from collidium.hub.repository import HubFile, Repository

#: Called with the bytes that have come and those that there are to come.
Progress = Callable[[int, int], None]

#: Files received at once.
PARALLEL: Final = 8
#: Seconds between two looks at a file that another process receives.
_LOOK_SECONDS: Final = 0.2
#: How long an interrupted download may take to end; threads that wait for the network are left behind.
_LEAVE_SECONDS: Final = 1.0
#: Seconds between two reports of progress: more would cost more than they tell.
_TELL_SECONDS: Final = 0.05


class NoRoom(CollidiumError):
    """The disk is full."""


class Download:
    """The files of a repository that are still missing on a shelf, received by several threads."""

    def __init__(
        self, hub: HubReader, repository: Repository, shelf: Shelf, files: Sequence[HubFile],
        progress: Progress | None = None,
    ) -> None:  # fmt: skip
        self._hub = hub
        self._repository = repository
        self._shelf = shelf
        self._files = files
        self._progress = progress
        self._queue: queue.SimpleQueue[HubFile] = queue.SimpleQueue()
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._done = 0
        self._tell_after = 0.0
        self._total = sum(file.size for file in files)

    def run(self, parallel: int = PARALLEL) -> None:
        """Receive all files. What is whole stays, whatever happens to the others.

        Raises UnusableDataset for a file that is damaged on the hub, NoRoom, OSError, and what
        :class:`HubReader` raises.
        """
        if not self._files:
            return
        self._refuse_too_much()
        for file in self._files:
            self._queue.put(file)
        crew = [
            threading.Thread(target=self._work, name="collidium-download", daemon=True)
            for _ in range(min(parallel, len(self._files)))
        ]
        for member in crew:
            member.start()
        try:
            for member in crew:
                member.join()
        except BaseException:
            self._hub.stopped.set()
            latest = monotonic() + _LEAVE_SECONDS
            for member in crew:
                member.join(max(0, latest - monotonic()))
            raise
        if self._error is not None:
            raise self._error

    def _refuse_too_much(self) -> None:
        free = shutil.disk_usage(self._shelf.directory).free
        if self._total > free:
            raise NoRoom(
                f"{self._shelf.directory}: {size_text(self._total)} are to be downloaded, and the disk has "
                f"{size_text(free)} left; ask for fewer events or tables, or choose another place"
            )

    def _work(self) -> None:
        """Receive files until none is left, or somebody failed."""
        try:
            while not self._hub.stopped.is_set():
                file = self._queue.get_nowait()
                if not self._receive(file):
                    # Another process has it; there may be others to do meanwhile.
                    self._queue.put(file)
                    self._hub.stopped.wait(_LOOK_SECONDS)
        except (queue.Empty, Stopped):
            pass
        except BaseException as error:  # it belongs to who waits for the files
            with self._lock:
                self._error = self._error or error
            self._hub.stopped.set()

    def _receive(self, file: HubFile) -> bool:
        """Receive a file, unless another process does; whether it is there now."""
        with self._shelf.part(file) as part:
            if part is None:
                return False
            if self._shelf.has(file):
                self._shelf.discard(file)
                self._tell(file.size)
                return True
            try:
                # Not made to survive a power cut: a file that loses its end then is noticed by its size.
                Transfer(self._hub, self._repository, file, part, self._tell).run()
            except OSError as error:
                if not is_full(error):
                    raise
                self._shelf.discard(file)
                raise NoRoom(
                    f"{self._shelf.directory}: there is no room for more; what was whole is kept, and the "
                    "same download goes on from there when there is"
                ) from error
            except Stopped:
                if isinstance(self._error, NoRoom):
                    self._shelf.discard(file)
                raise
            self._shelf.keep(file)
        return True

    def _tell(self, count: int) -> None:
        with self._lock:
            self._done += count
            due = self._done == self._total or monotonic() >= self._tell_after
            if self._progress is not None and due:
                self._tell_after = monotonic() + _TELL_SECONDS
                self._progress(self._done, self._total)


def size_text(count: int) -> str:
    """Bytes as people read them: ``12.3 MB``."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def receive(
    hub: HubReader,
    repository: Repository,
    shelf: Shelf,
    files: Sequence[HubFile],
    *,
    verify: bool = False,
    parallel: int = PARALLEL,
    progress: Progress | None = None,
) -> list[HubFile]:
    """Download those of ``files`` that are not on the shelf; returns them.

    With ``verify`` those that are there are read and checked. Raises as :meth:`Download.run`.
    """
    missing = [file for file in files if not shelf.has(file, verify=verify)]
    shelf.claim()
    Download(hub, repository, shelf, missing, progress).run(parallel)
    return missing
