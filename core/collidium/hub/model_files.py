"""The files of a model in a repository of the hub."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collidium.errors import InvalidInput, NotFound
from collidium.hub.client import Hub, hub_failures, transfer_seconds

if TYPE_CHECKING:
    from huggingface_hub import HfApi

MODEL: Final = "model.onnx"
MANIFEST: Final = "manifest.toml"
#: What a server takes of a model, at the maximum.
_MAX_BYTES: Final = 100_000_000
_SOURCE: Final = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?", re.ASCII)


async def download_model(hub: Hub, source: str, directory: Path) -> tuple[str, str]:
    """Download :data:`MODEL` and :data:`MANIFEST`; returns the repository and the commit.

    Parameters
    ----------
    source
        ``NAMESPACE/NAME``, or ``NAMESPACE/NAME@COMMIT``; a branch or tag is as good.
    directory
        Where they are written.

    Raises
    ------
    InvalidInput
        For another source.
    NotFound
        Where the repository, or one of the files in it, is missing.
    CollidiumError
        As :func:`~.client.hub_failures`, while the hub is away.
    """
    named = _SOURCE.fullmatch(source)
    if named is None:
        raise InvalidInput(f"{source}: neither a file here, nor a model repository NAMESPACE/NAME@COMMIT")
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
        commit, missing = await hub.ask(download, transfer_seconds(_MAX_BYTES))
    if not commit:
        raise NotFound(f"the hub {hub.endpoint} shows no model repository {repo} with a revision {revision}")
    if missing:
        raise NotFound(f"{repo} has no {' and no '.join(missing)} at {commit[:12]}")
    return repo, commit
