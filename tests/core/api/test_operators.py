"""Operators with scopes and tokens of their own."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from collidium import settings
from collidium.api.authentication import SCOPES
from collidium.errors import ConfigurationError
from collidium.operations import Scope
from collidium.testing.databases import Databases
from collidium.testing.server import ServerProcess, run_command

from .conftest import ok, operating, refused, signed_in


@pytest.fixture(scope="module")
def server(_databases: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with _databases.migrated() as url, ServerProcess(tmp_path_factory.mktemp("server"), url) as running:
        with signed_in(running, "alice") as alice:
            alice.get("/v1/me")
        yield running


class Desk:
    """Clients of one server, by the token of an operator."""

    def __init__(self, server: ServerProcess, clients: ExitStack) -> None:
        self._server, self._clients = server, clients
        self.first = self.by(server.admin_token)

    def by(self, token: str) -> httpx.Client:
        return self._clients.enter_context(operating(self._server, token))

    def add(self, name: str, *scopes: str, challenge: str | None = None) -> httpx.Client:
        body = {"name": name, "scopes": list(scopes), "challenge": challenge}
        return self.by(ok(self.first.post("/admin/operators", json=body))["token"])


@pytest.fixture
def desk(server: ServerProcess) -> Iterator[Desk]:
    with ExitStack() as clients:
        yield Desk(server, clients)


GIFT = {"hub_username": "alice", "delta": 1, "reason": "a talk"}


def test_groups_may_have_every_scope() -> None:
    given = [f"group={scope}" for scope in Scope]
    assert settings.load(oidc_operators=given).oidc_operators == tuple(given)
    with pytest.raises(ConfigurationError):
        settings.load(oidc_operators=["group=everything"])


def test_operators_do_what_their_scopes_open(desk: Desk) -> None:
    anna = desk.add("anna", "accounts")
    assert anna.post("/admin/grant", json=GIFT).status_code == 200
    assert anna.get("/admin/accounts/alice").status_code == 200
    for path in ("/admin/usage", "/admin/tasks", "/admin/requests", "/admin/operators", "/metrics"):
        refused(anna.get(path), 403, "anna has: accounts")
    assert anna.post("/admin/freeze?frozen=true").status_code == 403
    assert desk.add("rita", "reports").get("/metrics").status_code == 200
    log = desk.first.get("/admin/audit?limit=3")
    actions = [(entry["actor"], entry["action"]) for entry in log.json()]
    assert actions == [("admin", "add_operator"), ("anna", "grant"), ("admin", "add_operator")]
    assert anna.headers["X-Admin-Token"] not in log.text
    chief = desk.add("chief", "all")
    assert chief.post("/admin/operators", json={"name": "emil", "scopes": ["reports"]}).status_code == 200


def test_a_withdrawn_token_is_refused_at_once(server: ServerProcess, desk: Desk) -> None:
    before = desk.first.get("/admin/accounts/alice").json()["credits"]
    anna = desk.add("bea", "accounts")
    again = desk.first.post("/admin/operators", json={"name": "bea", "scopes": ["all"]})
    refused(again, 409, "withdraw it first")
    body = b'{"hub_username": "alice", "delta": 1, "reason": "late"}'
    head = f"POST /admin/grant HTTP/1.1\r\nHost: x\r\nX-Admin-Token: {anna.headers['X-Admin-Token']}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", int(server.base_url.rpartition(":")[2]))) as slow:
        slow.sendall(head.encode() + body[:10])
        assert anna.get("/admin/accounts").status_code == 200
        for _ in range(2):
            assert desk.first.post("/admin/operators/bea/withdraw").status_code == 200
        slow.sendall(body[10:])
        assert slow.makefile("rb").readline().split()[1] == b"401"
    assert anna.get("/admin/accounts").status_code == 401
    assert desk.first.get("/admin/accounts/alice").json()["credits"] == before
    new = desk.add("bea", "reports")
    assert (new.get("/admin/usage").status_code, anna.get("/admin/usage").status_code) == (200, 401)
    assert desk.first.post("/admin/operators/unknown/withdraw").status_code == 404


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"name": "an\u202ena\n", "scopes": ["accounts", "money"]}, ["name", "scopes"]),
        ({"name": "admin", "scopes": []}, ["name", "scopes"]),
        ({"name": "Ä" * 10_000, "scopes": ["all"]}, ["name"]),
        ({"name": "otto", "scopes": ["all"], "challenge": "a/\x00b"}, ["challenge", "scopes"]),
        ({"name": "otto", "scopes": ["all"], "challenge": "jets"}, ["scopes"]),
    ],
)
def test_invalid_operators_are_rejected(desk: Desk, body: dict[str, object], fields: list[str]) -> None:
    answer = desk.first.post("/admin/operators", json=body)
    assert answer.status_code == 422
    assert [problem["field"] for problem in answer.json()["errors"]] == fields
    assert "otto" not in desk.first.get("/admin/operators").text


def test_an_unknown_token_is_401(desk: Desk) -> None:
    for token in ("", "é", "collidium_operator_" + "A" * 43, "x" * 5000):
        headers = {"X-Admin-Token": token.encode()}
        answer = desk.by("").get("/admin/usage", headers=headers)
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "X-Admin-Token")
    assert set(SCOPES.values()) == set(Scope) - {Scope.ALL}


def test_the_command_shows_a_token_once(server: ServerProcess) -> None:
    def run(*arguments: str, token: str = server.admin_token) -> subprocess.CompletedProcess[str]:
        known = {"PLATFORM_BACKEND": server.base_url, "ADMIN_TOKEN": token}
        return run_command(arguments, server.environment | known, server.directory)

    added = run("operator", "add", "carl", "--scopes", "reports,accounts")
    token = added.stdout.strip()
    assert (added.returncode, token.startswith("collidium_operator_")) == (0, True), added.stderr
    assert run("admin", "usage", token=token).returncode == 0
    assert run("admin", "freeze", "--yes", token=token).returncode == 3
    listed = run("operator", "list").stdout
    assert ("carl" in listed, token in listed) == (True, False)
    assert run("operator", "withdraw", "carl", "--yes").returncode == 0
    assert run("admin", "usage", token=token).returncode == 3
    assert run("operator", "add", "dora").returncode == 2
    assert token not in server.log()
