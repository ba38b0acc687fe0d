"""Uploads: contents by LFS, and commits."""

from __future__ import annotations

import sqlite3
from typing import Any, Final

from quart import Response, request

from collidium.api.bodies import ReceivedFile, receive_to_file
from collidium_plugins.local_hub.commits import (
    REGULAR_BYTES,
    BadCard,
    apply_commit,
    check_commit,
    contents,
    keep_contents,
    keep_object,
    read_card,
    read_commit,
)
from collidium_plugins.local_hub.failures import HubError, invalid, not_signed_in, repo_not_found
from collidium_plugins.local_hub.names import SHA256, check_path, page_prefix
from collidium_plugins.local_hub.repositories import (
    Address,
    Commit,
    Repo,
    branch_head,
    check_quota,
    owns_object,
    writable,
)
from collidium_plugins.local_hub.store import LARGEST, Upload
from collidium_plugins.local_hub.trees import Trees
from collidium_plugins.local_hub.web.context import (
    base_url,
    flag,
    hub,
    in_thread,
    json_response,
    reading,
    revision_and_path,
    sent_document,
    writing,
)
from collidium_plugins.local_hub.web.repos import page_url

FILES_PER_QUESTION: Final = 256
OBJECTS_PER_QUESTION: Final = 1000
XET_ADVICE: Final = "this-hub-takes-no-uploads-by-Xet;set-HF_HUB_DISABLE_XET=1"
COMMIT_BYTES: Final = 2 * 1024**3


async def validate_yaml() -> Response:
    """``POST /api/validate-yaml``: may this text be a README?"""
    content = (await sent_document()).get("content")
    if not isinstance(content, str):
        raise invalid("The content is a string")
    try:
        await in_thread(hub().readers, read_card, content)
    except BadCard as error:
        errors = [{"message": f"The front matter cannot be read: {error}"}]
        return json_response({"error": "Invalid front matter", "errors": errors, "warnings": []}, 400)
    return json_response({"errors": [], "warnings": []})


async def preupload(place: Address) -> Response:
    """``POST …/preupload/{revision}``: how is each of these files to be uploaded?"""
    branch, _ = revision_and_path("preupload", 4)
    files = _sent_files((await sent_document()).get("files"))

    def describe(db: sqlite3.Connection) -> list[dict[str, Any]]:
        repo = writable(db, place)
        trees, root = Trees(db, repo.id), branch_head(db, repo, branch).tree
        documents = []
        for path, size in files:
            document = {"path": path, "uploadMode": _mode(path, size), "shouldIgnore": False}
            entry = trees.find(root, check_path(path))
            if entry is not None and not entry.is_directory:
                document["oid"] = entry.etag
            documents.append(document)
        return documents

    return json_response({"files": await reading(describe)})


def _sent_files(files: object) -> list[tuple[str, int]]:
    if not isinstance(files, list) or len(files) > FILES_PER_QUESTION:
        raise invalid(f"The files are a list of {FILES_PER_QUESTION} at most")
    sent = []
    for file in files:
        size = file.get("size") if isinstance(file, dict) else None
        if not isinstance(size, int) or not 0 <= size <= LARGEST:
            raise invalid(f"Each file has a path and a size of {LARGEST:,} bytes at most")
        sent.append(("/".join(check_path(file.get("path"))), size))
    return sent


def _mode(path: str, size: int) -> str:
    is_large = size >= REGULAR_BYTES or path.lower().endswith(".parquet")
    return "lfs" if is_large and size > 0 else "regular"


async def refuse_xet(place: Address) -> Response:
    """``GET …/xet-write-token/{revision}``: the newest huggingface_hub uploads by Xet, whatever we answer.

    Of an error it shows the address alone, so the address says what to do.
    """
    return Response("", 307, {"Location": f"{base_url()}/api/xet/{XET_ADVICE}"})


# -- contents ------------------------------------------------------------------------------------------------


async def lfs_batch(place: Address) -> Response:
    """``POST [/{kind}]/{namespace}/{name}.git/info/lfs/objects/batch``"""
    sent = await sent_document()
    if sent.get("operation") != "upload" or sent.get("hash_algo", "sha256") != "sha256":
        raise HubError(422, "Only uploads go this way; files are downloaded from their own addresses")
    objects = _sent_objects(sent.get("objects"))

    def missing(db: sqlite3.Connection) -> tuple[Repo, set[str]]:
        repo = writable(db, place)
        wanted = {oid: size for oid, size in objects if owns_object(db, repo, oid) != size}
        check_quota(db, repo.id, hub().store.quota, sum(wanted.values()))
        return repo, set(wanted)

    repo, wanted = await reading(missing)
    documents = [
        {"oid": oid, "size": size} | ({"actions": _actions(repo, oid, size)} if oid in wanted else {})
        for oid, size in objects
    ]
    response = json_response({"transfer": "basic", "objects": documents})
    response.content_type = "application/vnd.git-lfs+json"
    return response


def _actions(repo: Repo, oid: str, size: int) -> dict[str, Any]:
    upload, signature = hub().store.signer.sign(repo.id, oid, size)
    query = f"size={size}&expires={upload.expires}&signature={signature}"
    verify = f"{base_url()}/{page_prefix(repo.kind)}{repo.full_name}.git/info/lfs/verify"
    return {"upload": {"href": f"{base_url()}/lfs/{repo.id}/{oid}?{query}"}, "verify": {"href": verify}}


def _sent_objects(objects: object) -> list[tuple[str, int]]:
    if not isinstance(objects, list) or len(objects) > OBJECTS_PER_QUESTION:
        raise invalid(f"The objects are a list of {OBJECTS_PER_QUESTION} at most")
    return [_sent_object(item) for item in objects]


def _sent_object(item: object) -> tuple[str, int]:
    oid, size = (item.get("oid"), item.get("size")) if isinstance(item, dict) else (None, None)
    if not isinstance(oid, str) or not SHA256.fullmatch(oid):
        raise invalid("An object is named by its SHA-256")
    if not isinstance(size, int) or not 0 <= size <= LARGEST:
        raise invalid(f"An object has a size of {LARGEST:,} bytes at most")
    return oid, size


async def put_content(repo_id: int, oid: str) -> Response:
    """``PUT /lfs/{repo_id}/{oid}``: the address is signed, so the client sends no token"""
    arguments = request.args
    try:
        upload = Upload(repo_id, oid, int(arguments.get("size", "")), int(arguments.get("expires", "")))
    except ValueError:
        raise HubError(403, "The address is not one that this hub signed") from None
    if not hub().store.signer.is_valid(upload, arguments.get("signature", "")):
        raise HubError(403, "The address has expired or is not one that this hub signed")
    await reading(lambda db: check_quota(db, repo_id, hub().store.quota, upload.size))
    blobs = hub().store.blobs
    async with receive_to_file(request, blobs.uploads, upload.size, part=None, media_types=None) as received:
        _check_content(received, upload)
        await received.move_to(blobs.path(oid))
    await writing(lambda db: _keep_upload(db, upload))
    return json_response({})


def _check_content(received: ReceivedFile, upload: Upload) -> None:
    if received.size_bytes != upload.size or received.sha256 != upload.sha256:
        raise invalid("The content is not the one that was announced: its size or SHA-256 differs")


def _keep_upload(db: sqlite3.Connection, upload: Upload) -> None:
    try:
        if not db.execute("SELECT 1 FROM repos WHERE id = ?", (upload.repo_id,)).fetchone():
            raise repo_not_found(anonymous=False)
        check_quota(db, upload.repo_id, hub().store.quota, upload.size)
    except HubError:
        hub().store.blobs.forget_unused(db, [upload.sha256])
        raise
    keep_object(db, hub().store.blobs, upload.repo_id, upload.sha256, upload.size)


async def lfs_verify(place: Address) -> Response:
    """``POST [/{kind}]/{namespace}/{name}.git/info/lfs/verify``: was this content received?"""
    oid, size = _sent_object(await sent_document())
    if await reading(lambda db: owns_object(db, writable(db, place), oid)) != size:
        raise HubError(404, "The content was not received")
    return json_response({})


# -- commits -------------------------------------------------------------------------------------------------


async def commit(place: Address) -> Response:
    """``POST …/commit/{branch}``, a line of JSON for each change"""
    branch, _ = revision_and_path("commit", 4)
    if flag(request.args.get("create_pr", "")):
        raise HubError(501, "This hub has no discussions or pull requests: commit to a branch")
    await reading(lambda db: branch_head(db, writable(db, place), branch))
    uploads = hub().store.blobs.uploads
    async with receive_to_file(request, uploads, COMMIT_BYTES, part=None, media_types=None) as received:
        repo, made = await in_thread(hub().writers, _commit, place, branch, received)
    document = {"success": True, "commitOid": made.oid, "commitUrl": f"{page_url(repo)}/commit/{made.oid}"}
    return json_response(document)


def _commit(place: Address, branch: str, received: ReceivedFile) -> tuple[Repo, Commit]:
    account = place.caller
    if account is None:
        raise not_signed_in()
    with received.path.open("rb") as lines:
        header, changes = read_commit(lines)
    with hub().store.database.reading() as db:
        check_commit(db, writable(db, place), branch, header, changes)
    is_made = False
    try:
        with received.path.open("rb") as lines:
            keep_contents(lines, hub().store.blobs)
        with hub().store.database.writing() as db:
            repo = writable(db, place)
            made = apply_commit(db, hub().store.blobs, repo, branch, account.name, header, changes)
            check_quota(db, repo.id, hub().store.quota)
        is_made = True
        return repo, made
    finally:
        if not is_made:
            hub().store.forget_unused(contents(changes))
