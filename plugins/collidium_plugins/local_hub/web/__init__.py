"""The hub's addresses.

``{kind}`` is models, datasets or spaces. In pages, as in clients' addresses, models have no such prefix.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

from quart import Blueprint, Response
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter

from collidium.api import browsers
from collidium.api.mounting import HUB_PATH
from collidium.errors import CollidiumError
from collidium_plugins.local_hub.failures import HubError
from collidium_plugins.local_hub.names import KINDS, Kind
from collidium_plugins.local_hub.openid.clients import Client
from collidium_plugins.local_hub.repositories import Address
from collidium_plugins.local_hub.store import Store
from collidium_plugins.local_hub.web import consent, context, files, repos, tokens, uploads
from collidium_plugins.local_hub.web.context import (
    TOKEN_PATH,
    authenticate,
    caller,
    failure,
    raw_segments,
)

logger = logging.getLogger(__name__)

_KIND: Final = "<any(models,datasets,spaces):kind>"
_PAGES: Final = "<any(datasets,spaces):kind>"
_REPO: Final = f"/api/{_KIND}/<namespace>/<name>"
_LFS: Final = "/<namespace>/<name>.git/info/lfs"

#: Method, address, and handler, which is given the repository that an address names.
#: ``rest`` is read from the raw path, where ``%2F`` is no separator.
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
    ("GET", f"{_REPO}/xet-write-token/<anything:rest>", uploads.refuse_xet),
    ("POST", f"{_LFS}/objects/batch", uploads.lfs_batch),
    ("POST", f"/{_PAGES}{_LFS}/objects/batch", uploads.lfs_batch),
    ("POST", f"{_LFS}/verify", uploads.lfs_verify),
    ("POST", f"/{_PAGES}{_LFS}/verify", uploads.lfs_verify),
    ("PUT", "/lfs/<int:repo_id>/<oid>", uploads.put_content),
    ("GET", "/.well-known/openid-configuration", tokens.configuration),
    ("GET", "/oauth/authorize", consent.ask),
    ("POST", "/oauth/authorize", consent.answer),
    ("GET", "/oauth/pages.css", context.style),
    ("GET", consent.PATH, consent.show),
    ("POST", consent.PATH, consent.join),
    ("POST", TOKEN_PATH, tokens.token),
    ("GET", "/oauth/jwks", tokens.jwks),
    ("GET", "/oauth/userinfo", tokens.userinfo),
    ("POST", "/oauth/userinfo", tokens.userinfo),
]


class Anything(BaseConverter):
    """The rest of an address, whatever it holds: slashes at either end, line breaks."""

    regex = "(?s:.+)"
    part_isolating = False


def make_blueprint(
    directory: Path, client: Client, proxies: int = 0, quota_bytes: int = sys.maxsize
) -> Blueprint:
    """The hub, keeping its files below ``directory``, which it makes when the server starts.

    ``client`` is the OAuth client; ``proxies`` is the number of trusted proxies in front of the hub;
    ``quota_bytes`` how much the repositories of one account may take.
    """
    blueprint = Blueprint("local_hub", __name__, url_prefix=HUB_PATH, template_folder="templates")
    blueprint.record(lambda state: state.app.url_map.converters.update(anything=Anything))
    for number, (method, rule, handler) in enumerate(ROUTES):
        endpoint = f"{handler.__name__}_{number}"
        view = _of_repo(handler) if "<namespace>" in rule else handler
        blueprint.add_url_rule(rule, endpoint, view, methods=[method], merge_slashes=False)
    # Last, so that unknown addresses are answered in the hub's format.
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    for rule in ("/", "/<anything:rest>"):
        blueprint.add_url_rule(rule, f"nothing_{len(rule)}", _nothing, methods=methods, merge_slashes=False)
    blueprint.before_request(authenticate)
    blueprint.register_error_handler(HubError, _refuse)
    blueprint.register_error_handler(CollidiumError, _refuse_own)
    blueprint.register_error_handler(HTTPException, _refuse_http)
    blueprint.register_error_handler(sqlite3.OperationalError, _refuse_busy)

    @blueprint.before_app_serving
    async def open_store() -> None:
        opened = await asyncio.to_thread(Store, directory, quota_bytes)
        await asyncio.to_thread(opened.tidy)
        context.begin(context.Hub(opened, client, proxies))

    blueprint.after_app_serving(context.end)
    return blueprint


def _of_repo(handler: Callable[[Address], Awaitable[Response]]) -> Callable[..., Awaitable[Response]]:
    async def view(namespace: str, name: str, kind: Kind = "models", rest: str = "") -> Response:
        return await handler(Address(kind, namespace, name, caller()))

    return view


#: What clients ask for of a repository that this hub does not do.
_UNSUPPORTED: Final = {
    "discussions": (501, "This hub has no discussions or pull requests: commit to a branch"),
    "super-squash": (501, "This hub keeps all history: it cannot be squashed"),
    "lfs-files": (501, "This hub keeps all history: files are deleted for good with their repository alone"),
}
_NO_SPACES: Final = (501, "This hub keeps Spaces as files and runs none of them")


async def _nothing(**_: Any) -> Response:
    status, message = 404, "This hub has no such address"
    match raw_segments():
        case ["api", "xet", _]:
            # Xet's client would retry a 5xx for minutes.
            status, message = 400, "This hub takes no uploads by Xet: set HF_HUB_DISABLE_XET=1"
        case ["api", kind, _, _, verb, *_] if kind in KINDS:
            status, message = _UNSUPPORTED.get(verb, _NO_SPACES if kind == "spaces" else (status, message))
    raise HubError(status, message)


async def _refuse(error: HubError) -> Response:
    if browsers.wants_page():
        return await context.page("failure.html", error.status, error=error)
    return failure(error)


async def _refuse_own(error: CollidiumError) -> Response:
    return failure(HubError(error.status, error.detail), error.headers)


async def _refuse_http(error: HTTPException) -> Response:
    return failure(HubError(error.code or 500, error.description or error.name))


async def _refuse_busy(error: sqlite3.OperationalError) -> Response:
    logger.error("the hub's database: %s", error)
    return failure(HubError(503, "The hub's database is busy or its disk is full; try again soon"))
