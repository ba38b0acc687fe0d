"""Repositories: made, deleted, listed, described, and their branches and tags."""

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
from collidium_plugins.local_hub.failures import HubError, invalid, revision_not_found
from collidium_plugins.local_hub.names import KINDS, Kind, page_prefix
from collidium_plugins.local_hub.repositories import MAIN, Address, Repo, ancestors, readable, writable
from collidium_plugins.local_hub.trees import Trees
from collidium_plugins.local_hub.web.context import (
    base_url,
    caller,
    flag,
    hub,
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
    document = _naming(repo)
    if not is_new:
        raise HubError(409, f"You already have {repo.full_name}", body=document)
    return json_response(document)


async def delete() -> Response:
    """``DELETE /api/repos/delete``"""
    wanted = await sent_document()
    kind, name = _kind(wanted), wanted.get("name")
    account = caller()
    namespace = wanted.get("organization") or (account.name if account else "")
    if not isinstance(name, str) or not isinstance(namespace, str) or kind not in KINDS:
        raise invalid("A repository has a name and a type")
    place = Address(kind, namespace, name, account)
    contents = await writing(lambda db: repositories.delete(db, place))
    # Only after the deletion is kept: a crash between the two leaves too much, never too little.
    await writing(lambda db: hub().store.blobs.forget_unused(db, contents))
    return json_response({})


async def move() -> Response:
    """``POST /api/repos/move``: another name for a repository"""
    wanted = await sent_document()
    kind = _kind(wanted)
    (namespace, name), (new_namespace, new_name) = _halves(wanted, "fromRepo"), _halves(wanted, "toRepo")
    place = Address(kind, namespace, name, caller())
    repo = await writing(lambda db: repositories.rename(db, place, new_namespace, new_name))
    return json_response(_naming(repo))


def _halves(wanted: dict[str, Any], field: str) -> list[str]:
    halves = str(wanted.get(field)).split("/")
    if len(halves) != 2:
        raise invalid(f"{field} is a repository as namespace/name")
    return halves


def _naming(repo: Repo) -> dict[str, str]:
    return {"url": page_url(repo), "name": repo.full_name, "id": repo.full_name}


async def change_settings(place: Address) -> Response:
    """``PUT /api/{kind}/{namespace}/{name}/settings``: private or public"""
    wanted = await sent_document()
    if wanted.pop("gated", False) is not False:
        raise HubError(501, "This hub has no gated repositories: make it private instead")
    # Newer clients send the first, older ones the second.
    visibility, private = wanted.pop("visibility", None), wanted.pop("private", None)
    if visibility is not None:
        private = {"private": True, "public": False}.get(str(visibility), visibility)
    if wanted or not isinstance(private, bool | None):
        raise HubError(501, "Of a repository's settings, this hub has private and public alone")
    repo = await writing(lambda db: repositories.set_private(db, place, private))
    return json_response({"private": repo.private, "gated": False})


async def check_access(place: Address) -> Response:
    """``GET …/auth-check``: may the caller see it?"""
    await reading(lambda db: readable(db, place))
    return json_response({})


async def check_write_access(place: Address) -> Response:
    """``GET …/auth-check/write``: may the caller change it?"""
    await reading(lambda db: writable(db, place))
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


async def info(place: Address) -> Response:
    """``GET /api/{kind}/{namespace}/{name}[/revision/{revision}]``"""
    revision = revision_and_path("revision", 4)[0] if "rest" in (request.view_args or {}) else MAIN
    details = flag(request.args.get("blobs", ""))

    def describe(db: sqlite3.Connection) -> dict[str, Any]:
        repo = readable(db, place)
        commit = repositories.revision(db, repo, revision)
        siblings = sibling_documents(Trees(db, repo.id), commit, details=details)
        return repo_document(db, repo, commit) | {"siblings": siblings}

    return await read_document(describe)


async def refs(place: Address) -> Response:
    """``GET …/refs``"""

    def describe(db: sqlite3.Connection) -> dict[str, Any]:
        repo = readable(db, place)

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


async def commits(place: Address) -> Response:
    """``GET …/commits/{revision}``, newest first"""
    start = request.args.get("cursor") or revision_and_path("commits", 4)[0]
    number = limit(PAGE, COMMITS_PAGE)

    def page(db: sqlite3.Connection) -> tuple[list[dict[str, Any]], str | None]:
        repo = readable(db, place)
        first = repositories.revision(db, repo, start)
        found = list(islice(ancestors(db, repo.id, first), number + 1))
        cursor = found[number].oid if len(found) > number else None
        return [commit_document(commit) for commit in found[:number]], cursor

    return await read_page(page)


async def add_branch(place: Address) -> Response:
    """``POST …/branch/{name}``"""
    start = (await sent_document()).get("startingPoint", MAIN)
    return await _change_refs(place, "branch", revision_and_path("branch", 4)[0], start)


async def add_tag(place: Address) -> Response:
    """``POST …/tag/{revision}``"""
    tag = (await sent_document()).get("tag")
    return await _change_refs(place, "tag", tag, revision_and_path("tag", 4)[0])


async def delete_branch(place: Address) -> Response:
    """``DELETE …/branch/{name}``"""
    return await _delete_ref(place, "branch")


async def delete_tag(place: Address) -> Response:
    """``DELETE …/tag/{name}``"""
    return await _delete_ref(place, "tag")


async def _change_refs(place: Address, kind: str, name: object, target: object) -> Response:
    if not isinstance(target, str):
        raise revision_not_found(str(target)[:100])
    await writing(lambda db: repositories.add_ref(db, writable(db, place), kind, name, target))
    return json_response({})


async def _delete_ref(place: Address, kind: str) -> Response:
    ref = revision_and_path(kind, 4)[0]
    await writing(lambda db: repositories.delete_ref(db, writable(db, place), kind, ref))
    return json_response({})


def page_url(repo: Repo) -> str:
    """The address that clients know a repository by."""
    return f"{base_url()}/{page_prefix(repo.kind)}{repo.full_name}"


def _kind(wanted: dict[str, Any]) -> Kind:
    kind = _KIND_OF_TYPE.get(str(wanted.get("type") or "model"))
    if kind is None:
        raise invalid("A repository is of type model, dataset or space")
    return kind
