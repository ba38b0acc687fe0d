"""Parallel, resumable and verified download of a repository's files; download of a model.

``huggingface_hub`` verifies no hashes, and starts a file over after a crash. ``perf/README.md`` has the
measurements.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Final

from collidium.errors import CollidiumError, InvalidInput, NotFound, UnusableDataset, UpstreamError
from collidium.files.durable import is_full
from collidium.hub.client import Hub, hub_failures, transfer_seconds
from collidium.hub.download_store import DownloadStore
from collidium.hub.reader import HubReader, TransientError
from collidium.hub.repository import HubFile, Repository
from collidium.presentation.quantities import size_text
from collidium.runtime.progress import Progress

if TYPE_CHECKING:
    from huggingface_hub import HfApi

#: Files received at once.
PARALLEL: Final = 8
#: Seconds between attempts at a file that another process downloads.
_RETRY_SECONDS: Final = 0.2
#: How long an interrupted download waits for its threads, which may be blocked by the network.
_JOIN_SECONDS: Final = 1.0
#: Seconds between reports of progress.
_REPORT_SECONDS: Final = 0.05

MODEL: Final = "model.onnx"
MANIFEST: Final = "manifest.toml"
#: Maximum size of a model that servers accept.
_MODEL_BYTES: Final = 100_000_000
_MODEL_SOURCE: Final = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?", re.ASCII)


class NoRoom(CollidiumError):
    """The disk is full."""


class _Stopped(Exception):
    """The download was cancelled."""


def download_missing(
    hub: HubReader,
    repository: Repository,
    store: DownloadStore,
    files: Sequence[HubFile],
    *,
    verify: bool = False,
    parallel: int = PARALLEL,
    progress: Progress | None = None,
) -> list[HubFile]:
    """Download those of ``files`` that the store lacks, and return them.

    Complete files stay in the store if others fail. With ``verify``, existing files are verified by hash.

    Raises
    ------
    UnusableDataset
        If a file is damaged on the hub.
    NoRoom
        If the disk is full.
    OSError, CollidiumError
        For other errors of the disk, and as :class:`HubReader`.
    """
    missing = [file for file in files if not store.has(file, verify=verify)]
    store.claim()
    if missing:
        _Download(hub, repository, store, missing, progress).run(min(parallel, len(missing)))
    return missing


class _Download:
    """Threads that download files until all are complete or one fails."""

    def __init__(
        self,
        hub: HubReader,
        repository: Repository,
        store: DownloadStore,
        files: Sequence[HubFile],
        progress: Progress | None,
    ) -> None:
        self._hub = hub
        self._repository = repository
        self._store = store
        self._progress = progress
        self._queue: queue.SimpleQueue[HubFile] = queue.SimpleQueue()
        for file in files:
            self._queue.put(file)
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        self._done = 0
        self._report_after = 0.0
        self._total = sum(file.size for file in files)

    def run(self, parallel: int) -> None:
        free = shutil.disk_usage(self._store.directory).free
        if self._total > free:
            raise NoRoom(
                f"{self._store.directory}: the download has {size_text(self._total)}, and the disk has "
                f"{size_text(free)} free; request fewer events or tables, or choose another directory"
            )
        threads = [
            threading.Thread(target=self._work, name="collidium-download", daemon=True)
            for _ in range(parallel)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:  # raised again; also Ctrl-C
            self._hub.stopped.set()
            latest = monotonic() + _JOIN_SECONDS
            for thread in threads:
                thread.join(max(0, latest - monotonic()))
            raise
        if self._error is not None:
            raise self._error

    def _work(self) -> None:
        try:
            while not self._hub.stopped.is_set():
                file = self._queue.get_nowait()
                if not self._receive(file):
                    # Another process downloads it; continue with others.
                    self._queue.put(file)
                    self._hub.stopped.wait(_RETRY_SECONDS)
        except (queue.Empty, _Stopped):
            pass
        except BaseException as error:  # raised by run()
            with self._lock:
                self._error = self._error or error
            self._hub.stopped.set()

    def _receive(self, file: HubFile) -> bool:
        """Download a file unless another process does; returns whether it is complete."""
        with self._store.part(file) as part:
            if part is None:
                return False
            if self._store.has(file):
                self._store.discard(file)
                self._report(file.size)
                return True
            try:
                # Not synced: a file truncated by a power cut is detected by its size.
                self._fill(file, part)
            except OSError as error:
                if not is_full(error):
                    raise
                self._store.discard(file)
                raise NoRoom(
                    f"{self._store.directory}: the disk is full; complete files are kept, and the same "
                    "download will resume"
                ) from error
            except _Stopped:
                if isinstance(self._error, NoRoom):
                    self._store.discard(file)
                raise
            self._store.keep(file)
        return True

    def _fill(self, file: HubFile, part: IO[bytes]) -> None:
        """Append what is missing to a part, and verify it."""
        have = part.seek(0, os.SEEK_END)
        self._report(have)
        # A resumed part may be damaged on disk, so there is one more attempt.
        for _ in range(3 if have else 2):
            attempts, furthest = 0, part.tell()
            while part.tell() < file.size:
                try:
                    if not self._append(file, part):
                        break
                except TransientError as error:
                    # Without range requests each attempt starts at 0: only new bytes count as progress.
                    attempts = attempts + 1 if part.tell() <= furthest else 1
                    furthest = max(furthest, part.tell())
                    self._hub.pause(error, attempts)
            if part.tell() == file.size and file.is_in(self._store.part_path(file)):
                return
            self._truncate(part)
        raise UnusableDataset(
            f"{file.path} of {self._repository.repo} is damaged on {self._repository.endpoint}: its "
            "content was downloaded twice and does not match the hub's hash"
        )

    def _append(self, file: HubFile, part: IO[bytes]) -> bool:
        """Append one response; returns whether the part has the file's size."""
        wanted = f"{part.tell()}-" if part.tell() else ""
        address = self._repository.address(file.path)
        with self._hub.open(address, file.path, byte_range=wanted) as response:
            if wanted and response.status_code != 206:
                # The hub does not support range requests.
                self._truncate(part)
            elif wanted and not response.headers.get("Content-Range", "").startswith(f"bytes {wanted}"):
                raise UpstreamError(f"{self._repository.endpoint} sent another range than requested")
            for chunk in response.iter_raw():
                if self._hub.stopped.is_set():
                    raise _Stopped
                if part.tell() + len(chunk) > file.size:
                    return False
                rest = memoryview(chunk)
                while rest:
                    rest = rest[part.write(rest) :]
                self._report(len(chunk))
        return part.tell() == file.size

    def _truncate(self, part: IO[bytes]) -> None:
        self._report(-part.tell())
        part.truncate(0)
        part.seek(0)

    def _report(self, count: int) -> None:
        """Count received bytes; a negative count discards some."""
        with self._lock:
            self._done += count
            due = self._done == self._total or monotonic() >= self._report_after
            if self._progress is not None and due:
                self._report_after = monotonic() + _REPORT_SECONDS
                self._progress(self._done, self._total)


async def download_model(hub: Hub, source: str, directory: Path) -> tuple[str, str]:
    """Download :data:`MODEL` and :data:`MANIFEST`, and return the repository and the commit.

    Parameters
    ----------
    source
        ``NAMESPACE/NAME`` or ``NAMESPACE/NAME@REVISION``, with a commit, branch or tag.
    directory
        Directory of the files.

    Raises
    ------
    InvalidInput
        If ``source`` is malformed.
    NotFound
        If the repository, or one of the files in it, is missing.
    CollidiumError
        As :func:`~.client.hub_failures`.
    """
    named = _MODEL_SOURCE.fullmatch(source)
    if named is None:
        raise InvalidInput(f"{source}: neither an existing file nor a model repository NAMESPACE/NAME@COMMIT")
    repo, revision = named["repo"], named["revision"] or "main"

    def download(api: HfApi) -> tuple[str, list[str]]:
        if not api.repo_exists(repo) or not api.revision_exists(repo, revision):
            return "", []
        commit = str(api.model_info(repo, revision=revision).sha)
        missing = [name for name in (MODEL, MANIFEST) if not api.file_exists(repo, name, revision=commit)]
        for name in () if missing else (MODEL, MANIFEST):
            api.hf_hub_download(repo, name, revision=commit, local_dir=directory)
        return commit, missing

    with hub_failures(hub.endpoint):
        commit, missing = await hub.ask(download, transfer_seconds(_MODEL_BYTES))
    if not commit:
        raise NotFound(f"the hub {hub.endpoint} has no model repository {repo} with a revision {revision}")
    if missing:
        raise NotFound(f"{repo} has no {' and no '.join(missing)} at {commit[:12]}")
    return repo, commit
