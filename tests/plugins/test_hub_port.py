"""The local hub at its own port: the same hub, with the URLs of that port."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from urllib.parse import urlsplit

import httpx
import pytest
from tests.hub import token_on

from collidium.testing.server import ServerProcess

from .test_hub_oauth import ELSEWHERE, Application

SignIn = Callable[[str], Application]
LFS = {"operation": "upload", "objects": [{"oid": "a" * 64, "size": 3}]}


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    environment = {"PLATFORM_TRUSTED_PROXIES": "1", "PLATFORM_OAUTH_REDIRECT_URIS": ELSEWHERE}
    with ServerProcess(tmp_path_factory.mktemp("platform"), env=environment) as server:
        yield server


@pytest.fixture(scope="module")
def token(platform: ServerProcess) -> str:
    token = token_on(platform.data_dir / "hub", "ada")
    for name in ("first", "second"):
        made = httpx.post(
            f"{platform.hub_url}/api/repos/create",
            json={"name": name},
            headers={"Authorization": f"Bearer {token}"},
            trust_env=False,
        )
        assert made.json()["url"] == f"{platform.hub_url}/ada/{name}"
    return token


@pytest.fixture(params=["root", "mount"])
def hub(request: pytest.FixtureRequest, platform: ServerProcess) -> str:
    return platform.hub_url if request.param == "root" else f"{platform.base_url}/hub"


@pytest.fixture
def sign_in() -> Iterator[SignIn]:
    """Begins a sign-in at a hub."""
    with ExitStack() as clients:

        def begin(hub: str) -> Application:
            client = httpx.Client(base_url=hub, timeout=30, trust_env=False)
            return Application(hub, client=clients.enter_context(client))

        yield begin


def get(url: str, **headers: str) -> httpx.Response:
    return httpx.get(url, headers=headers, trust_env=False)


def upload_address(hub: str, token: str, headers: Mapping[str, str] | None = None) -> str:
    answer = httpx.post(
        f"{hub}/ada/first.git/info/lfs/objects/batch",
        json=LFS,
        headers={"Authorization": f"Bearer {token}", **(headers or {})},
        trust_env=False,
    )
    actions = answer.json()["objects"][0]["actions"]
    base, _, _ = actions["upload"]["href"].partition("/lfs/")
    assert actions["verify"]["href"] == f"{base}/ada/first.git/info/lfs/verify"
    return str(base)


def test_addresses_are_those_of_the_port(hub: str, token: str) -> None:
    assert upload_address(hub, token) == hub
    first = get(f"{hub}/api/models?limit=1")
    assert first.links["next"]["url"].startswith(f"{hub}/api/models?limit=1&cursor=")
    assert [repo["id"] for repo in get(first.links["next"]["url"]).json()] == ["ada/first"]
    page = get(f"{hub}/ada/first")
    assert f'href="{urlsplit(hub).path}/oauth/pages.css' in page.text
    document = get(f"{hub}/.well-known/openid-configuration").json()
    assert document["issuer"] == hub
    assert all(document[name].startswith(f"{hub}/oauth/") for name in document if name.endswith("endpoint"))


def test_a_sign_in_stays_at_one_issuer(hub: str, token: str, sign_in: SignIn) -> None:
    application = sign_in(hub)
    application.redirect_uri = application.query["redirect_uri"] = ELSEWHERE
    tokens = application.tokens(token)
    payload = tokens["id_token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    assert claims["iss"] == hub
    assert application.status(tokens["access_token"]) == 200


def test_no_page_at_the_root_is_the_applications(platform: ServerProcess, sign_in: SignIn) -> None:
    at_root, at_mount = sign_in(platform.hub_url), sign_in(f"{platform.base_url}/hub")
    for own in (platform.hub_url, platform.base_url):
        asked = at_root.ask(redirect_uri=f"{own}/web/callback")
        assert asked.status_code == 400, asked.text
    assert at_root.ask(redirect_uri=ELSEWHERE).status_code == 200
    assert at_mount.ask(redirect_uri=f"{platform.base_url}/web/callback").status_code == 200


def test_addresses_have_the_scheme_that_our_proxy_saw(hub: str, token: str) -> None:
    host = {"Host": "hub.example.org"}
    path = urlsplit(hub).path
    for passed, scheme in (("https", "https"), ("https, http", "http"), ("gopher", "http"), ("", "http")):
        address = upload_address(hub, token, host | {"X-Forwarded-Proto": passed})
        assert address == f"{scheme}://hub.example.org{path}"


def test_only_the_hub_is_at_its_port(platform: ServerProcess, token: str) -> None:
    for path in ("/v1/me", "/healthz", "/hub/api/models", "/admin/audit", "/", "//", "/web"):
        assert get(platform.hub_url + path).status_code == 404, path
    assert get(f"{platform.base_url}/api/models").status_code == 404
    assert get(f"{platform.hub_url}/api/models/ada%2Ffirst").status_code == 200


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("{hub}/api/models/ada/first/tree/main", 200),
        ("http://[::1/api/models", 200),
        ("/../v1/channels", 404),
        ("*", 404),
        ("x", 404),
        ("http://x", 404),
    ],
)
def test_a_target_of_any_form_is_the_hubs(
    platform: ServerProcess, token: str, target: str, status: int
) -> None:
    host, port = urlsplit(platform.hub_url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        line = f"GET {target.format(hub=platform.hub_url)} HTTP/1.1"
        connection.sendall(f"{line}\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        assert int(connection.makefile("rb").readline().split()[1]) == status


@pytest.mark.parametrize("path", ["/api/models", "/oauth/authorize"])
def test_a_page_of_an_error_has_the_headers_of_the_error(platform: ServerProcess, path: str) -> None:
    host, port = urlsplit(platform.hub_url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        lengths = "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\n{lengths}".encode())
        head = connection.recv(65536).partition(b"\r\n\r\n")[0].lower()
    assert b"content-type: text/html" in head
    assert b"connection: close" in head
