"""The hub's routes and error handlers.

``{kind}`` is models, datasets or spaces. Outside ``/api``, models have no such prefix.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from quart import Blueprint, Response, request
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter

from collidium.api import browsers
from collidium.api.mounting import HUB_PATH
from collidium.errors import CollidiumError
from collidium_plugins.local_hub.failures import HubFailure, as_hub_error
from collidium_plugins.local_hub.names import KINDS, Kind
from collidium_plugins.local_hub.openid.requests import AuthorizationError, RegisteredClient
from collidium_plugins.local_hub.repositories import RepositoryTarget
from collidium_plugins.local_hub.store import Store
from collidium_plugins.local_hub.web import context, files, repos, signing_in, tokens, uploads, xet
from collidium_plugins.local_hub.web.context import (
    TOKEN_PATH,
    XET_PATH,
    authenticate,
    caller,
    failure,
    raw_segments,
)

_KIND: Final = "<any(models,datasets,spaces):kind>"
_PAGES: Final = "<any(datasets,spaces):kind>"
_REPO: Final = f"/api/{_KIND}/<namespace>/<name>"
_LFS: Final = "/<namespace>/<name>.git/info/lfs"

#: Method, rule and handler. A handler whose rule names a repository takes it as a :class:`Target`.
#: ``rest`` is parsed from the raw path, where ``%2F`` is no separator.
ROUTES: Final[list[tuple[str, str, Callable[..., Awaitable[Response]]]]] = [
    ("GET", "/api/whoami-v2", tokens.whoami),
    ("POST", "/api/validate-yaml", uploads.validate_yaml),
    ("POST", "/api/repos/create", repos.create),
    ("POST", "/api/repos/move", repos.move),
    ("DELETE", "/api/repos/delete", repos.delete),
    ("GET", f"/api/{_KIND}", repos.list_),
    ("GET", _REPO, repos.info),
    ("GET", f"{_REPO}/revision/<anything:rest>", repos.info),
    ("PUT", f"{_REPO}/settings", repos.change_settings),
    ("GET", f"{_REPO}/auth-check", repos.check_access),
    ("GET", f"{_REPO}/auth-check/write", repos.check_write_access),
    ("GET", f"{_REPO}/lfs-files", files.lfs_files),
    ("GET", f"{_REPO}/refs", repos.refs),
    ("GET", f"{_REPO}/commits/<anything:rest>", repos.commits),
    ("POST", f"{_REPO}/branch/<anything:rest>", repos.add_branch),
    ("DELETE", f"{_REPO}/branch/<anything:rest>", repos.delete_branch),
    ("POST", f"{_REPO}/tag/<anything:rest>", repos.add_tag),
    ("DELETE", f"{_REPO}/tag/<anything:rest>", repos.delete_tag),
    ("GET", f"{_REPO}/tree/<anything:rest>", files.tree),
    ("POST", f"{_REPO}/paths-info/<anything:rest>", files.paths_info),
    ("GET", "/<namespace>/<name>", files.show_page),
    ("GET", f"/{_PAGES}/<namespace>/<name>", files.show_page),
    ("GET", "/<namespace>/<name>/resolve/<anything:rest>", files.resolve),
    ("GET", f"/{_PAGES}/<namespace>/<name>/resolve/<anything:rest>", files.resolve),
    ("POST", f"{_REPO}/preupload/<anything:rest>", uploads.preupload),
    ("POST", f"{_REPO}/commit/<anything:rest>", uploads.commit),
    ("GET", f"{_REPO}/xet-write-token/<anything:rest>", xet.write_token),
    ("POST", f"{XET_PATH}<session>/v1/xorbs/default/<xorb>", xet.put_xorb),
    ("POST", f"{XET_PATH}<session>/shards", xet.put_shard),
    ("POST", f"{XET_PATH}<session>/v<int(min=1,max=2):version>/shards", xet.put_shard),
    ("POST", f"{_LFS}/objects/batch", uploads.lfs_batch),
    ("POST", f"/{_PAGES}{_LFS}/objects/batch", uploads.lfs_batch),
    ("POST", f"{_LFS}/verify", uploads.lfs_verify),
    ("POST", f"/{_PAGES}{_LFS}/verify", uploads.lfs_verify),
    ("PUT", "/lfs/upload", uploads.put_content),
    ("GET", "/.well-known/openid-configuration", tokens.configuration),
    ("GET", signing_in.CONSENT, signing_in.ask_consent),
    ("POST", signing_in.CONSENT, signing_in.answer_consent),
    ("GET", "/oauth/pages.css", context.style),
    ("GET", signing_in.LINK, signing_in.show_link),
    ("POST", signing_in.LINK, signing_in.use_link),
    ("POST", TOKEN_PATH, tokens.token),
    ("GET", "/oauth/jwks", tokens.jwks),
    ("GET", "/oauth/userinfo", tokens.userinfo),
    ("POST", "/oauth/userinfo", tokens.userinfo),
]


class Anything(BaseConverter):
    """The rest of a path, including slashes at either end and line breaks."""

    regex = "(?s:.+)"
    part_isolating = False


def make_blueprint(
    directory: Path, client: RegisteredClient, proxies: int = 0, quota_bytes: int = sys.maxsize
) -> Blueprint:
    """Make the hub, which stores its files below ``directory``.

    ``client`` is the OAuth client, ``proxies`` the number of trusted proxies in front of the hub, and
    ``quota_bytes`` limits the repositories of one account, together.
    """
    blueprint = Blueprint("local_hub", __name__, url_prefix=HUB_PATH, template_folder="templates")
    blueprint.record(lambda state: state.app.url_map.converters.update(anything=Anything))
    for number, (method, rule, handler) in enumerate(ROUTES):
        endpoint = f"{handler.__name__}_{number}"
        view = _with_target(handler) if "<namespace>" in rule else handler
        blueprint.add_url_rule(rule, endpoint, view, methods=[method], merge_slashes=False)
    # Last, so that unknown paths get an error in the hub's format.
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    for rule in ("/", "/<anything:rest>"):
        blueprint.add_url_rule(rule, f"nothing_{len(rule)}", _unknown, methods=methods, merge_slashes=False)
    blueprint.before_request(authenticate)
    for kind in (HubFailure, CollidiumError, HTTPException, sqlite3.OperationalError):
        blueprint.register_error_handler(kind, _show_error)
    blueprint.register_error_handler(AuthorizationError, _return_to_application)

    @blueprint.before_app_serving
    async def open_store() -> None:
        opened = await asyncio.to_thread(Store, directory, quota_bytes)
        await asyncio.to_thread(opened.tidy)
        context.begin(context.ServedHub(opened, client, proxies))

    @blueprint.while_app_serving
    async def end_idle_uploads() -> AsyncGenerator[None, None]:
        task = asyncio.create_task(xet.end_idle_hourly())
        yield
        task.cancel()
        await asyncio.wait([task])

    blueprint.after_app_serving(context.end)
    return blueprint


def _with_target(
    handler: Callable[[RepositoryTarget], Awaitable[Response]],
) -> Callable[..., Awaitable[Response]]:
    async def view(namespace: str, name: str, kind: Kind = "models", rest: str = "") -> Response:
        return await handler(RepositoryTarget(kind, namespace, name, caller()))

    return view


#: Calls of clients that this hub does not implement.
_UNSUPPORTED: Final = {
    "discussions": (501, "This hub has no discussions or pull requests: commit to a branch"),
    "super-squash": (501, "This hub keeps all history and cannot squash it"),
    "lfs-files": (501, "This hub keeps all history: delete the repository to delete its files"),
}
_NO_SPACES: Final = (501, "This hub stores the files of Spaces and does not run them")


async def _unknown(**_: Any) -> Response:
    status, message = 404, "This hub has no such address"
    segments = raw_segments()
    if len(segments) >= 5 and segments[0] == "api" and segments[1] in KINDS:
        otherwise = _NO_SPACES if segments[1] == "spaces" else (status, message)
        status, message = _UNSUPPORTED.get(segments[4], otherwise)
    raise HubFailure(status, message)


async def _show_error(error: Exception) -> Response:
    failed = as_hub_error(error)
    is_sign_in = request.path in {HUB_PATH + signing_in.CONSENT, HUB_PATH + signing_in.LINK}
    if not is_sign_in and not browsers.wants_page():
        return failure(failed)
    template = "refused.html" if is_sign_in else "failure.html"
    response = await context.page(template, failed.status, error=failed)
    response.headers.update(failed.headers)
    return response


async def _return_to_application(error: AuthorizationError) -> Response:
    return signing_in.redirect_to(error.address)
