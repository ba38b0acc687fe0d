"""Records of the commits of repositories that this machine has seen, so that downloaded data needs no hub.

::

    <directory>/commits/<commit>.json    a repository at a commit, with all of its files
    <directory>/refs/<revision>          the last commit that a branch or tag had

They lie with the downloaded files. A directory that cannot be written gets none.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from collidium.errors import Unreachable, UpstreamError
from collidium.files import durable
from collidium.hub.offline import NAME, is_offline
from collidium.hub.reader import HubReader
from collidium.hub.repository import COMMIT, Repository
from collidium.hub.sources import HubDataset

logger = logging.getLogger(__name__)

#: Errors of reading a record that is absent, or was written by another release.
_UNUSABLE: Final = (OSError, ValueError, TypeError, KeyError, UpstreamError)


def read_repository(hub: HubReader, source: HubDataset, directory: Path, *, current: bool) -> Repository:
    """Return a repository, by its records below ``directory`` where no hub is needed.

    A full commit that is recorded is not read from the hub, except with ``current``, which asks for the
    present visibility of the repository. With ``HF_HUB_OFFLINE`` no hub is called, and a branch or tag is the
    commit that it had when it was last seen, which is logged.

    Raises as :meth:`Repository.read`, and Unreachable if ``HF_HUB_OFFLINE`` is set and there is no record.
    """
    if is_offline():
        return _last_known(source, directory)
    if COMMIT.fullmatch(source.revision) and not current and (known := _recorded(source, directory)):
        return known
    try:
        found = Repository.read(hub, source)
    except Unreachable as error:
        if known := _recorded(source, directory):
            advice = f"; {NAME}=1 uses commit {known.commit[:12]} of the cache"
            raise Unreachable(f"{error.detail}{advice}") from error
        raise
    with suppress(OSError):
        _record(found, source.revision, directory)
    return found


def _last_known(source: HubDataset, directory: Path) -> Repository:
    known = _recorded(source, directory)
    if known is None:
        raise Unreachable(
            f"{NAME} forbids calls of the hub {source.endpoint}, and no download of {source.repo} at "
            f"{source.revision} is in {directory}: unset {NAME}, and download it first"
        )
    if source.revision != known.commit:
        seen = datetime.fromtimestamp(_ref(source.revision, directory).stat().st_mtime, UTC)
        logger.warning(
            "%s: offline, so %s of %s is commit %s, as of %s",
            source.repo,
            source.revision,
            source.endpoint,
            known.commit[:12],
            f"{seen:%Y-%m-%d %H:%M} UTC",
        )
    return known


def _recorded(source: HubDataset, directory: Path) -> Repository | None:
    with suppress(*_UNUSABLE):
        commit = source.revision
        if not COMMIT.fullmatch(commit):
            commit = _ref(commit, directory).read_text("ascii").strip()
        found = Repository.from_record(json.loads(_file(commit, directory).read_text("utf-8")))
        if (found.repo, found.endpoint, found.commit) == (source.repo, source.endpoint, commit):
            return found
    return None


def _record(found: Repository, revision: str, directory: Path) -> None:
    file, ref = _file(found.commit, directory), _ref(revision, directory)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(file, json.dumps(found.record()))
    if revision != found.commit:
        ref.parent.mkdir(parents=True, exist_ok=True)
        durable.replace(ref, found.commit)


def _file(commit: str, directory: Path) -> Path:
    return directory / "commits" / f"{commit}.json"


def _ref(revision: str, directory: Path) -> Path:
    return directory / "refs" / quote(revision, safe="")
