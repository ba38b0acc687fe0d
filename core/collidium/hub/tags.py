"""Names for versions of a dataset repository: each is given once and stays where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidium.errors import Conflict
from collidium.hub.publishing import Contents, Target

if TYPE_CHECKING:
    from huggingface_hub import HfApi


async def tags_of(target: Target) -> dict[str, str]:
    """The tags of a repository, each with its commit."""

    def ask(api: HfApi) -> dict[str, str]:
        refs = api.list_repo_refs(target.repo, repo_type="dataset")
        return {tag.name: tag.target_commit for tag in refs.tags}

    return await target.hub.ask(ask)


async def refuse_older(tag: str | None, there: Contents | None, target: Target) -> None:
    """Raise Conflict where a version before the newest has the tag: before any work."""
    if tag is not None and there is not None and (await tags_of(target)).get(tag, there.head) != there.head:
        raise _taken(tag, target)


async def refuse_any(tag: str | None, there: Contents | None, target: Target) -> None:
    """Raise Conflict where any version has the tag: before a new one is made."""
    if tag is not None and there is not None and tag in await tags_of(target):
        raise _taken(tag, target)


async def put(tag: str, revision: str, target: Target) -> None:
    """Give a commit a tag, which it may have. Raises Conflict where another commit has it."""

    def make(api: HfApi) -> None:
        api.create_tag(target.repo, tag=tag, revision=revision, repo_type="dataset", exist_ok=True)

    if tag not in await tags_of(target):
        await target.hub.ask(make)
    if (await tags_of(target)).get(tag) != revision:
        raise _taken(tag, target)


def _taken(tag: str, target: Target) -> Conflict:
    return Conflict(f"{target.repo} has a tag {tag} already, of another version: choose another one")
