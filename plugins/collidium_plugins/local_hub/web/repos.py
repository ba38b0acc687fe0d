"""Repositories: create, delete, list, describe; branches and tags."""

from __future__ import annotations

import sqlite3
from itertools import islice
from typing import Any, Final

from quart import Response, request

from collidium_plugins.local_hub import repositories
from collidium_plugins.local_hub.documents import (
    PAGE,
    Query,
    commit_document,
    list_repos,
    repo_document,
    sibling_documents,
)
from collidium_plugins.local_hub.failures import HubFailure, invalid, revision_not_found
from collidium_plugins.local_hub.names import KINDS, Kind, page_prefix
from collidium_plugins.local_hub.repositories import (
    MAIN,
    Repo,
    RepositoryTarget,
    ancestors,
    readable,
    writable,
)
from collidium_plugins.local_hub.trees import Trees
from collidium_plugins.local_hub.web.context import (
    base_url,
    caller,
    flag,
    hub,
    in_thread,
    json_response,
    limit,
    read_document,
    read_page,
    reading,
    revision_and_path,
    sent_document,
    writing,
)

COMMITS_PAGE: Final = 50
_KIND_OF_TYPE: Final[dict[str, Kind]] = {kind.removesuffix("s"): kind for kind in KINDS}


async def create() -> Response:
    """``POST /api/repos/create``"""
    wanted = await sent_document()
    private = wanted.get("visibility") == "private" or wanted.get("private") is True
    kind = _kind(wanted)

    def make(db: sqlite3.Connection) -> tuple[Repo, bool]:
        made = repositories.create(
            db, caller(), kind, wanted.get("organization"), wanted.get("name"), private
        )
        if made[1]:
            repositories.check_quota(db, made[0].id, hub().store.quota)
        return made

    repo, is_new = await writing(make)
    document = _name_document(repo)
    if not is_new:
        raise HubFailure(409, f"You already have {repo.full_name}", body=document)
    return json_response(document)


async def delete() -> Response:
    """``DELETE /api/repos/delete``"""
    wanted = await sent_document()
    kind, name = _kind(wanted), wanted.get("name")
    account = caller()
    namespace = wanted.get("organization") or (account.name if account else "")
    if not isinstance(name, str) or not isinstance(namespace, str) or kind not in KINDS:
        raise invalid("name and type of the repository are required")
    target = RepositoryTarget(kind, namespace, name, account)
    contents = await writing(lambda db: repositories.delete(db, target))
    # After the deletion is committed: a crash in between leaves unused contents, never missing ones.
    await in_thread(hub().writers, hub().store.delete_unused, contents)
    return json_response({})


async def move() -> Response:
    """``POST /api/repos/move``: renames a repository"""
    wanted = await sent_document()
    kind = _kind(wanted)
    namespace, name = _full_name(wanted, "fromRepo")
    new_namespace, new_name = _full_name(wanted, "toRepo")
    target = RepositoryTarget(kind, namespace, name, caller())
    repo = await writing(lambda db: repositories.rename(db, target, new_namespace, new_name))
    return json_response(_name_document(repo))


def _full_name(wanted: dict[str, Any], field: str) -> list[str]:
    parts = str(wanted.get(field)).split("/")
    if len(parts) != 2:
        raise invalid(f"{field} must be namespace/name")
    return parts


def _name_document(repo: Repo) -> dict[str, str]:
    return {"url": page_url(repo), "name": repo.full_name, "id": repo.full_name}


async def change_settings(target: RepositoryTarget) -> Response:
    """``PUT /api/{kind}/{namespace}/{name}/settings``: private or public"""
    wanted = await sent_document()
    if wanted.pop("gated", False) is not False:
        raise HubFailure(501, "This hub has no gated repositories: make it private instead")
    # Newer clients send "visibility", older ones "private".
    visibility, private = wanted.pop("visibility", None), wanted.pop("private", None)
    if visibility is not None:
        private = {"private": True, "public": False}.get(str(visibility), visibility)
    if wanted or not isinstance(private, bool | None):
        raise HubFailure(501, "The only setting of a repository on this hub is private or public")
    repo = await writing(lambda db: repositories.set_private(db, target, private))
    return json_response({"private": repo.private, "gated": False})


async def check_access(target: RepositoryTarget) -> Response:
    """``GET …/auth-check``: whether the caller may see it"""
    await reading(lambda db: readable(db, target))
    return json_response({})


async def check_write_access(target: RepositoryTarget) -> Response:
    """``GET …/auth-check/write``: whether the caller may change it"""
    await reading(lambda db: writable(db, target))
    return json_response({})


async def list_(kind: Kind) -> Response:
    """``GET /api/{kind}``"""
    query = Query(
        kind,
        filters=[tag for value in request.args.getlist("filter") for tag in value.split(",") if tag],
        author=request.args.get("author", ""),
        search=request.args.get("search", ""),
        sort=request.args.get("sort", "lastModified"),
        limit=limit(PAGE, PAGE),
        cursor=request.args.get("cursor", ""),
        with_files=flag(request.args.get("full", "")),
    )
    account = caller()
    return await read_page(lambda db: list_repos(db, account, query))


async def info(target: RepositoryTarget) -> Response:
    """``GET /api/{kind}/{namespace}/{name}[/revision/{revision}]``"""
    revision = revision_and_path("revision", 4)[0] if "rest" in (request.view_args or {}) else MAIN
    details = flag(request.args.get("blobs", ""))

    def describe(db: sqlite3.Connection) -> dict[str, Any]:
        repo = readable(db, target)
        commit = repositories.revision(db, repo, revision)
        siblings = sibling_documents(Trees(db, repo.id), commit, details=details)
        return repo_document(db, repo, commit) | {"siblings": siblings}

    return await read_document(describe)


async def refs(target: RepositoryTarget) -> Response:
    """``GET …/refs``"""

    def describe(db: sqlite3.Connection) -> dict[str, Any]:
        repo = readable(db, target)

        def named(kind: str, folder: str) -> list[dict[str, str]]:
            return [
                {"name": name, "ref": f"refs/{folder}/{name}", "targetCommit": oid}
                for name, oid in repositories.refs(db, repo, kind)
            ]

        return {
            "branches": named("branch", "heads"),
            "tags": named("tag", "tags"),
            "converts": [],
            "pullRequests": [],
        }

    return await read_document(describe)


async def commits(target: RepositoryTarget) -> Response:
    """``GET …/commits/{revision}``, newest first"""
    start = request.args.get("cursor") or revision_and_path("commits", 4)[0]
    number = limit(PAGE, COMMITS_PAGE)

    def page(db: sqlite3.Connection) -> tuple[list[dict[str, Any]], str | None]:
        repo = readable(db, target)
        first = repositories.revision(db, repo, start)
        found = list(islice(ancestors(db, repo.id, first), number + 1))
        cursor = found[number].oid if len(found) > number else None
        return [commit_document(commit) for commit in found[:number]], cursor

    return await read_page(page)


async def add_branch(target: RepositoryTarget) -> Response:
    """``POST …/branch/{name}``"""
    start = (await sent_document()).get("startingPoint", MAIN)
    return await _change_refs(target, "branch", revision_and_path("branch", 4)[0], start)


async def add_tag(target: RepositoryTarget) -> Response:
    """``POST …/tag/{revision}``"""
    tag = (await sent_document()).get("tag")
    return await _change_refs(target, "tag", tag, revision_and_path("tag", 4)[0])


async def delete_branch(target: RepositoryTarget) -> Response:
    """``DELETE …/branch/{name}``"""
    return await _delete_ref(target, "branch")


async def delete_tag(target: RepositoryTarget) -> Response:
    """``DELETE …/tag/{name}``"""
    return await _delete_ref(target, "tag")


async def _delete_ref(target: RepositoryTarget, kind: str) -> Response:
    name = revision_and_path(kind, 4)[0]
    await writing(lambda db: repositories.delete_ref(db, writable(db, target), kind, name))
    return json_response({})


async def _change_refs(target: RepositoryTarget, kind: str, name: object, revision: object) -> Response:
    if not isinstance(revision, str):
        raise revision_not_found(str(revision)[:100])
    await writing(lambda db: repositories.add_ref(db, writable(db, target), kind, name, revision))
    return json_response({})


def page_url(repo: Repo) -> str:
    """The URL of a repository."""
    return f"{base_url()}/{page_prefix(repo.kind)}{repo.full_name}"


def _kind(wanted: dict[str, Any]) -> Kind:
    kind = _KIND_OF_TYPE.get(str(wanted.get("type") or "model"))
    if kind is None:
        raise invalid("type must be model, dataset or space")
    return kind
