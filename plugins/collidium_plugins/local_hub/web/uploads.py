"""Uploads: LFS contents, and commits."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict, dataclass
from time import monotonic
from typing import Any, Final

from quart import Response, request

from collidium.api.bodies import ReceivedFile, receive_to_file
from collidium_plugins.local_hub.commits import (
    REGULAR_BYTES,
    BadCard,
    apply_commit,
    check_commit,
    contents,
    read_card,
    read_commit,
    reference_object,
    store_contents,
)
from collidium_plugins.local_hub.failures import HubFailure, invalid, not_signed_in, repo_not_found
from collidium_plugins.local_hub.names import SHA256, check_path, page_prefix
from collidium_plugins.local_hub.repositories import (
    Commit,
    Repo,
    RepositoryTarget,
    branch_head,
    check_quota,
    owns_object,
    writable,
)
from collidium_plugins.local_hub.store import sign, verify
from collidium_plugins.local_hub.trees import Trees
from collidium_plugins.local_hub.web.context import (
    base_url,
    flag,
    hub,
    in_thread,
    in_turn,
    json_response,
    reading,
    revision_and_path,
    sent_document,
    writing,
)
from collidium_plugins.local_hub.web.repos import page_url

#: Maximum numbers of files and objects of one request.
PREUPLOAD_FILES: Final = 256
BATCH_OBJECTS: Final = 1000
#: Maximum size of a file.
FILE_BYTES: Final = 64 * 1024**3
#: A client requests all upload URLs first and may need hours before it uses the last.
UPLOAD_SECONDS: Final = 12 * 3600
COMMIT_BYTES: Final = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class LargeFileUpload:
    """The content that a signed URL permits to upload."""

    repo_id: int
    sha256: str
    size: int


async def validate_yaml() -> Response:
    """``POST /api/validate-yaml``: checks the front matter of a README"""
    content = (await sent_document()).get("content")
    if not isinstance(content, str):
        raise invalid("content must be a string")
    try:
        await in_thread(hub().readers, read_card, content)
    except BadCard as error:
        errors = [{"message": f"The front matter cannot be read: {error}"}]
        return json_response({"error": "Invalid front matter", "errors": errors, "warnings": []}, 400)
    return json_response({"errors": [], "warnings": []})


async def preupload(target: RepositoryTarget) -> Response:
    """``POST …/preupload/{revision}``: whether to upload each file by LFS or inside the commit"""
    branch, _ = revision_and_path("preupload", 4)
    files = _sent_files((await sent_document()).get("files"))

    def describe(db: sqlite3.Connection) -> list[dict[str, Any]]:
        repo = writable(db, target)
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
    if not isinstance(files, list) or len(files) > PREUPLOAD_FILES:
        raise invalid(f"files must be a list of at most {PREUPLOAD_FILES}")
    sent = []
    for file in files:
        size = file.get("size") if isinstance(file, dict) else None
        if not isinstance(size, int) or not 0 <= size <= FILE_BYTES:
            raise invalid(f"Each file must have a path and a size of at most {FILE_BYTES:,} bytes")
        sent.append(("/".join(check_path(file.get("path"))), size))
    return sent


def _mode(path: str, size: int) -> str:
    is_large = size >= REGULAR_BYTES or path.lower().endswith(".parquet")
    return "lfs" if is_large and size > 0 else "regular"


# -- contents ------------------------------------------------------------------------------------------------


async def lfs_batch(target: RepositoryTarget) -> Response:
    """``POST [/{kind}]/{namespace}/{name}.git/info/lfs/objects/batch``"""
    sent = await sent_document()
    if sent.get("operation") != "upload" or sent.get("hash_algo", "sha256") != "sha256":
        raise HubFailure(422, "The only operation is upload, with SHA-256")
    objects = _sent_objects(sent.get("objects"))

    def missing(db: sqlite3.Connection) -> tuple[Repo, set[str]]:
        repo = writable(db, target)
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
    token = sign(hub().store.upload_key, asdict(LargeFileUpload(repo.id, oid, size)), UPLOAD_SECONDS)
    verify_url = f"{base_url()}/{page_prefix(repo.kind)}{repo.full_name}.git/info/lfs/verify"
    # In the query, which the access log leaves out.
    return {"upload": {"href": f"{base_url()}/lfs/upload?token={token}"}, "verify": {"href": verify_url}}


def _sent_objects(objects: object) -> list[tuple[str, int]]:
    if not isinstance(objects, list) or len(objects) > BATCH_OBJECTS:
        raise invalid(f"objects must be a list of at most {BATCH_OBJECTS}")
    return [_sent_object(item) for item in objects]


def _sent_object(item: object) -> tuple[str, int]:
    oid, size = (item.get("oid"), item.get("size")) if isinstance(item, dict) else (None, None)
    if not isinstance(oid, str) or not SHA256.fullmatch(oid):
        raise invalid("The oid of an object must be its SHA-256")
    if not isinstance(size, int) or not 0 <= size <= FILE_BYTES:
        raise invalid(f"The size of an object must be at most {FILE_BYTES:,} bytes")
    return oid, size


async def put_content() -> Response:
    """``PUT /lfs/upload?token=``: the URL is signed, so the client sends no credentials"""
    claims = verify(hub().store.upload_key, request.args.get("token", ""))
    if claims is None:
        raise HubFailure(403, "The upload URL has expired or was not signed by this hub")
    upload = LargeFileUpload(**claims)
    await reading(lambda db: check_quota(db, upload.repo_id, hub().store.quota, upload.size))
    blobs = hub().store.blobs
    async with receive_to_file(request, blobs.uploads, upload.size, part=None, media_types=None) as received:
        if received.size_bytes != upload.size or received.sha256 != upload.sha256:
            raise invalid("The content differs in size or SHA-256 from what was announced")
        await received.move_to(blobs.path(upload.sha256))
    await writing(lambda db: reference_upload(db, upload))
    return json_response({})


def reference_upload(db: sqlite3.Connection, upload: LargeFileUpload) -> None:
    """Reference a content from the repository it was uploaded to; raises HubError, and deletes it then."""
    try:
        if not db.execute("SELECT 1 FROM repos WHERE id = ?", (upload.repo_id,)).fetchone():
            raise repo_not_found(anonymous=False)
        check_quota(db, upload.repo_id, hub().store.quota, upload.size)
    except HubFailure:
        hub().store.blobs.delete_unused(db, [upload.sha256])
        raise
    reference_object(db, hub().store.blobs, upload.repo_id, upload.sha256, upload.size)


async def lfs_verify(target: RepositoryTarget) -> Response:
    """``POST [/{kind}]/{namespace}/{name}.git/info/lfs/verify``: whether the content was received"""
    oid, size = _sent_object(await sent_document())
    if await reading(lambda db: owns_object(db, writable(db, target), oid)) != size:
        raise HubFailure(404, "The content was not received")
    return json_response({})


# -- commits -------------------------------------------------------------------------------------------------


async def commit(target: RepositoryTarget) -> Response:
    """``POST …/commit/{branch}``, with a line of JSON per change"""
    branch, _ = revision_and_path("commit", 4)
    if flag(request.args.get("create_pr", "")):
        raise HubFailure(501, "This hub has no discussions or pull requests: commit to a branch")
    await reading(lambda db: branch_head(db, writable(db, target), branch))
    uploads = hub().store.blobs.uploads
    async with receive_to_file(request, uploads, COMMIT_BYTES, part=None, media_types=None) as received:
        account = target.caller.id if target.caller else 0
        threads = hub().committers
        repo, made = await in_turn(hub().committing, account, threads, _commit, target, branch, received)
    document = {"success": True, "commitOid": made.oid, "commitUrl": f"{page_url(repo)}/commit/{made.oid}"}
    return json_response(document)


def _commit(target: RepositoryTarget, branch: str, received: ReceivedFile) -> tuple[Repo, Commit]:
    account, began = target.caller, monotonic()
    if account is None:
        raise not_signed_in()
    with received.path.open("rb") as lines:
        header, changes = read_commit(lines)
    with hub().store.database.reading() as db:
        check_commit(db, writable(db, target), branch, header, changes)
    is_made = False
    try:
        with received.path.open("rb") as lines:
            store_contents(lines, hub().store.blobs)
        with hub().store.database.writing() as db:
            repo = writable(db, target)
            made = apply_commit(db, hub().store.blobs, repo, branch, account.name, header, changes)
            check_quota(db, repo.id, hub().store.quota)
        is_made = True
        return repo, made
    finally:
        if not is_made:
            hub().store.delete_unused(contents(changes), began)
