"""Each operation does what the OpenAPI document says: credentials, limits, errors and methods.

One server answers all calls that the document leads to (the fixture ``walk``); each test reads its answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from typing import Any, Final

import httpx
import pyarrow as pa
import pytest

from collidium import settings
from collidium.api.app import BLUEPRINTS, create_app
from collidium.operations import Scope
from collidium.testing.server import ServerProcess

from .conftest import SUBMIT, calling, ok, operating, parquet, signed_in
from .contract import (
    METHODS,
    Answer,
    Call,
    Input,
    Operation,
    at_limits,
    example_of,
    is_limited,
    is_valid,
    operations_of,
    with_limits,
)
from .contract_exceptions import (
    ACTIONS_OF_BENCHMARKS,
    ELSEWHERE,
    NEVER_ACCEPTED,
    NOT_BY_SCHEMA,
    OF_ALL,
    STREAMS,
    UNDOCUMENTED,
)

FILE_BYTES: Final = 100_000
JSON_BYTES: Final = 65_536
#: A server of its own: unknown tokens are not counted, and jobs do not end.
PLATFORM: Final = {
    "PLATFORM_UNKNOWN_TOKENS_BURST": "100000",
    "PLATFORM_UNKNOWN_TOKENS_PER_MINUTE": "100000",
    "PLATFORM_UNKNOWN_TOKENS_PER_MINUTE_IN_ALL": "100000",
    "PLATFORM_MAX_SUBMISSION_BYTES": str(FILE_BYTES),
    "PLATFORM_MOCK_SECONDS": "3600",
    "PLATFORM_BURST_REQUESTS": "1000",
    "PLATFORM_UNFINISHED_REQUESTS": "1000",
}

UNKNOWN: Final = "0-nothing"
EXAMPLES: Final = {
    "channel": "single_muon",
    "events": 1,
    "pileup": 0,
    "month": "2026-11",
    "model_repo": "alice/helix-fitter",
    "task": "tracking",
    "challenge": "tracking",
    "user": "caller",
    "preset": "muons-quick",
    "upload-complete": "?0",
    "upload-offset": 0,
}
CREDENTIALS: Final = {"hub_token": "Authorization", "admin_token": "X-Admin-Token"}


pytestmark = pytest.mark.timeout(600)  # of all calls together, on a machine that does other work


class Walk:
    """Calls every operation of one server, and keeps its answers by part of the contract."""

    def __init__(self, server: ServerProcess, clients: ExitStack, oracle: pa.Table) -> None:
        self._server = server
        self._clients = clients
        self._serial = count()
        self.answers: defaultdict[str, list[Answer]] = defaultdict(list)
        self.admin = clients.enter_context(operating(server))
        self.caller = clients.enter_context(signed_in(server, "caller"))
        self.banned = clients.enter_context(signed_in(server, "mallory"))
        self.anonymous = clients.enter_context(calling(server))
        ok(self.banned.get("/v1/me"))
        ok(self.admin.post("/admin/ban", json={"hub_username": "mallory", "banned": True}))
        self.document = ok(self.anonymous.get("/openapi.json"))
        self.operations = operations_of(self.document)
        self.limited = operations_of(with_limits(self.document, ok(self.anonymous.get("/v1/limits"))))
        self._existing = self._made(oracle)
        self._operators = {scope: self._operator(scope) for scope in Scope}
        self._organiser = self._operator(Scope.BENCHMARKS, challenge="tracking")

    def _made(self, oracle: pa.Table) -> dict[str, str]:
        """What exists, by the variable of a path that names it."""
        ok(self.caller.get("/v1/me"))
        ok(self.admin.post("/admin/grant", json={"hub_username": "caller", "delta": 500, "reason": "x"}))
        order = {"channel": "single_muon", "events": 1, "pileup": 0}
        return {
            "request_id": ok(self.caller.post("/v1/simulate", json=order), 202)["request_id"],
            "submission_id": ok(self.caller.post(SUBMIT, content=parquet(oracle)))["submission_id"],
            "hub_username": "caller",
            "name": "caller",
            "task": "tracking",
            "config": "ttbar_pu0",
            "event_id": "0",
            "kind": "datasets",
        }

    def _operator(self, scope: Scope, challenge: str | None = None) -> httpx.Client:
        body = {"name": f"operator-{next(self._serial)}", "scopes": [scope], "challenge": challenge}
        token = ok(self.admin.post("/admin/operators", json=body))["token"]
        return self._clients.enter_context(operating(self._server, token))

    def everything(self) -> None:
        """Make all calls."""
        for operation in self.operations:
            self._try_credentials(operation)
            self._try_bodies(operation)
        for path in self.document["paths"]:
            self._try_methods(path)
        for operation in self.limited:
            if operation.name not in STREAMS:
                self._try_limits(operation)

    def _keep(self, part: str, operation: Operation, about: str, response: httpx.Response) -> None:
        self.answers[part].append(Answer(operation, about, response))

    def client_of(self, operation: Operation) -> httpx.Client:
        """A client with the credential that the operation requires."""
        return {"hub_token": self.caller, "admin_token": self.admin}.get(operation.credential, self.anonymous)

    def unknown(self, operation: Operation) -> Call:
        """A valid call of the operation for what does not exist."""
        call = Call(operation, body=operation.example)
        for one in operation.inputs:
            if one.place == "path":
                call = call.with_value(one, UNKNOWN)
            elif one.is_required and not (one.place == "body" and one.name in call.body):
                known = EXAMPLES | {"other": self._existing["submission_id"]}
                call = call.with_value(one, example_of(one.schema, one.name, known))
        return call

    def existing(self, operation: Operation) -> Call:
        """The same for what exists, in a challenge of its own."""
        call = self.unknown(operation)
        path = {name: self._existing.get(name, value) for name, value in call.path.items()}
        challenge = path.keys() & {"name", "challenge"} if "/challenges/{" in operation.path else ()
        if challenge and "submission_id" in path:
            path |= dict.fromkeys(challenge, "tracking")
        elif challenge:
            name = f"contract-{next(self._serial)}"
            new = {"name": name, "task": "tracking", "team_size": 5}
            ok(self.admin.post("/admin/challenges", json=new), 201)
            path |= dict.fromkeys(challenge, name)
            if "/team/" in operation.path:
                ok(self.caller.post(f"/v1/challenges/{name}/team", json={"name": "Team"}), 201)
        if "upload_id" in path:
            path["upload_id"] = self._new_upload()
        body = call.body
        if operation.name in {"admin_new_challenge", "admin_add_operator"}:
            task = {"task": "tracking"} if "task" in body else {}
            body = body | task | {"name": f"new-{next(self._serial)}"}
        return replace(call, path=path, body=body)

    def _new_upload(self) -> str:
        digest = f"sha-256=:{'A' * 43}=:"
        begins = {"Upload-Complete": "?0", "Upload-Length": "100", "Repr-Digest": digest}
        begun = self.caller.post(SUBMIT, headers=begins)
        assert begun.status_code == 201, begun.text
        return begun.headers["Location"].rpartition("/")[2]

    def _try_credentials(self, operation: Operation) -> None:
        call = self.unknown(operation)
        if not operation.credential:
            self._keep("public", operation, "no credential", call.sent(self.anonymous))
            return
        other = self.admin if operation.credential == "hub_token" else self.caller
        self._keep("no credential", operation, "none", call.sent(self.anonymous))
        wrong = replace(call, query={"limit": "x", "wrong": "1"}, body=call.body and {"wrong": 1})
        self._keep("no credential", operation, "none, and wrong input", wrong.sent(self.anonymous))
        self._keep("no credential", operation, "of another kind", call.sent(other))
        header = CREDENTIALS[operation.credential]
        for token in ("Bearer wrong", "Basic Y2FsbGVyOng=", ""):
            wrong = replace(call, headers={**call.headers, header: token})
            self._keep("no credential", operation, token, wrong.sent(self.anonymous))
        if operation.credential == "hub_token":
            self._keep("forbidden", operation, "a banned account", call.sent(self.banned))
        else:
            self._try_scopes(operation)

    def _try_scopes(self, operation: Operation) -> None:
        call = replace(self.unknown(operation), body={} if operation.body else None)
        (scope,) = operation.scopes
        other = next(one for one in Scope if one not in {scope, Scope.ALL})
        self._keep("forbidden", operation, f"the scope {other}", call.sent(self._operators[Scope(other)]))
        self._keep("admitted", operation, f"the scope {scope}", call.sent(self._operators[Scope(scope)]))
        self._keep("forbidden", operation, "another's organiser", call.sent(self._organiser))
        if "challenge" in call.path and operation.name not in ACTIONS_OF_BENCHMARKS:
            own = replace(call, path={**call.path, "challenge": "tracking"})
            if operation.method == "GET" or operation.body:
                self._keep("admitted", operation, "the organiser", own.sent(self._organiser))

    def _try_bodies(self, operation: Operation) -> None:
        client, call = self.client_of(operation), self.unknown(operation)
        header = CREDENTIALS.get(operation.credential)
        if call.path:
            self._keep("404", operation, "what does not exist", call.sent(client))
        if header:
            twice = [(header, client.headers[header]), (header, "Bearer x")]
            self._keep("400", operation, "two credentials", call.sent(client, headers=twice))
        if operation.body:
            self._keep("400", operation, "no JSON", call.sent(client, b"{"))
            self._keep("413", operation, "a large body", call.sent(client, b'"%s"' % (b"x" * JSON_BYTES)))
            for content in (b"[]", b"null", b"1"):
                self._keep("422", operation, "no object", call.sent(client, content))
        elif operation.media_type:
            there, large = self.existing(operation), b"x" * (FILE_BYTES + 1)
            text = replace(there, headers={**there.headers, "Content-Type": "text/html"})
            self._keep("415", operation, "text", text.sent(client, b"x"))
            self._keep("413", operation, "a large file", there.sent(client, large))
            self._keep("other", operation, "no file", there.sent(client, b"x"))

    def _try_methods(self, path: str) -> None:
        known = {name.upper() for name in self.document["paths"][path]}
        operation = next(one for one in self.operations if one.path == path)
        for method in sorted(METHODS - known):
            response = self.anonymous.request(method, path.format_map(self.unknown(operation).path))
            self._keep("405", operation, " ".join(sorted(known)), response)

    def _try_limits(self, operation: Operation) -> None:
        client, call = self.client_of(operation), self.existing(operation)
        for about in ("a valid call", "the same again"):
            self._keep("other", operation, about, call.sent(client))
        if operation.body.get("additionalProperties") is False:
            unknown = replace(call, body={**call.body, "unknown": 1})
            self._keep("past a limit", operation, "unknown", unknown.sent(client))
        for one in operation.inputs:
            if one.place == "path":
                continue
            call = self.existing(operation)
            if one.is_required and one.name != "preset":  # without it the body is of the other kind
                self._keep("past a limit", operation, one.name, call.without(one).sent(client))
            for value in values_of(call, one):
                part = "within limits" if is_valid(one.schema, value) else "past a limit"
                self._keep(part, operation, one.name, call.with_value(one, value).sent(client))
        if operation.name == "admin_freeze":
            order = next(one for one in self.operations if one.name == "simulate")
            ok(self.admin.post("/admin/freeze?frozen=true"))
            self._keep("other", order, "frozen", self.unknown(order).sent(self.caller))
            ok(self.admin.post("/admin/freeze?frozen=false"))


def values_of(call: Call, one: Input) -> Iterator[Any]:
    """Values at both sides of each limit that a request can have at that place."""
    examples = {"Idempotency-Key": f"key-of-{call.operation.name}"}
    given = {**examples, **call.query, **call.headers, **(call.body or {})}
    example = given.get(one.name, example_of(one.schema, one.name, EXAMPLES))
    for value in at_limits(one.schema, example):
        text = str(value)
        if one.place == "header" and not (
            text.isascii() and text.isprintable() and text.strip() == text != ""
        ):
            continue  # no header has it
        yield value
    if one.place == "body":
        yield {"an": ["object"]}
        if not is_valid(one.schema, None):
            yield None


@pytest.fixture(scope="module")
def walk(platform: ServerProcess, oracle: pa.Table) -> Iterator[Walk]:
    """A server's answers to everything."""
    with ExitStack() as clients:
        walk = Walk(platform, clients, oracle)
        walk.everything()
        yield walk


def none(wrong: list[Answer]) -> None:
    """Fail with the first answer of each kind."""
    kinds = {(one.operation.name, one.about, one.status): str(one) for one in reversed(wrong)}
    assert not wrong, "\n".join(kinds.values())


def test_every_route_is_in_the_document(walk: Walk, tmp_path: Any) -> None:
    app = create_app(settings.load(data_dir=tmp_path))
    plugins = app.blueprints.keys() - {blueprint.name for blueprint in BLUEPRINTS}
    documented = {(one.method, one.path) for one in walk.operations}
    missing = {
        (method, rule.rule)
        for rule in app.url_map.iter_rules()
        if rule.rule not in UNDOCUMENTED and rule.endpoint.partition(".")[0] not in plugins
        for method in (rule.methods or set()) & METHODS
        if (method, rule.rule.replace("<path:", "<").replace("<", "{").replace(">", "}")) not in documented
    }
    assert missing == set()


def test_operations_require_their_credential(walk: Walk) -> None:
    none([one for one in walk.answers["no credential"] if one.status != 401])
    none([one for one in walk.answers["no credential"] if "WWW-Authenticate" not in one.response.headers])
    none([one for one in walk.answers["public"] if one.status in {401, 403}])


def test_operations_require_their_scope(walk: Walk) -> None:
    none([one for one in walk.answers["forbidden"] if one.status != 403])
    none([one for one in walk.answers["admitted"] if one.status in {401, 403}])
    # What is opened by no scope of its own needs all of them.
    operated = [one for one in walk.operations if one.credential == "admin_token"]
    assert {one.path.split("/")[2] for one in operated if one.scopes == [Scope.ALL]} == {"operators"}


def test_every_input_is_limited(walk: Walk) -> None:
    inputs = [(one.name, field) for one in walk.limited for field in one.inputs if field.place != "path"]
    assert {(name, field.name) for name, field in inputs if not is_limited(field.schema)} == set()
    assert all(one.body["additionalProperties"] is False for one in walk.operations if one.body)


def test_values_past_a_limit_are_refused(walk: Walk) -> None:
    none([one for one in walk.answers["past a limit"] if not one.names(one.about)])


def test_values_within_limits_are_accepted(walk: Walk) -> None:
    checked = [one for one in walk.answers["within limits"] if one.about not in NOT_BY_SCHEMA]
    assert len(checked) > 500
    none([one for one in checked if one.names(one.about)])


def test_each_input_has_a_value_that_succeeds(walk: Walk) -> None:
    within = [one for one in walk.answers["within limits"] if one.about not in NOT_BY_SCHEMA]
    succeeded = {(one.operation.name, one.about) for one in within if one.status < 300}
    failed = {(one.operation.name, one.about) for one in within} - succeeded
    exceptions = {(name, one) for _, names, inputs in NEVER_ACCEPTED for name in names for one in inputs}
    assert failed == exceptions


@pytest.mark.parametrize("status", [400, 404, 413, 415, 422])
def test_requests_that_are_wrong_get_their_error(walk: Walk, status: int) -> None:
    none([one for one in walk.answers[str(status)] if one.status != status])


def test_undeclared_methods_are_405(walk: Walk) -> None:
    none([one for one in walk.answers["405"] if one.status != 405])
    for one in walk.answers["405"]:
        allowed = set(one.response.headers["Allow"].split(", ")) - {"HEAD", "OPTIONS"}
        assert allowed == set(one.about.split()), str(one)


def test_each_declared_error_is_caused(walk: Walk) -> None:
    caused = {(one.operation.name, one.status) for answers in walk.answers.values() for one in answers}
    declared = {(one.name, status) for one in walk.operations for status in one.errors}
    of_all = {
        (one.name, OF_ALL[name][0])
        for one in walk.operations
        for name in {one.credential, *(field.name for field in one.inputs)} & OF_ALL.keys()
    }
    assert declared - caused - of_all == {
        (name, status) for (_, status), names in ELSEWHERE.items() for name in names
    }


def test_every_answer_is_as_documented(walk: Walk) -> None:
    wrong = []
    for one in (one for part, answers in walk.answers.items() if part != "405" for one in answers):
        if str(one.status) not in one.operation.described["responses"]:
            wrong.append(one)
        elif one.response.headers.get("Content-Type", "").endswith("json"):
            errors = one.operation.validator(one.status).iter_errors(one.response.json())
            wrong += [replace(one, about=error.message) for error in errors]
    none(wrong)


def test_no_answer_is_a_failure_of_the_server(walk: Walk) -> None:
    none(
        [
            one
            for answers in walk.answers.values()
            for one in answers
            if one.status >= 500 and one.status != 503
        ]
    )
    errors = [one for answers in walk.answers.values() for one in answers if one.status >= 400]
    none([one for one in errors if one.response.headers["Content-Type"] != "application/problem+json"])
    assert len(errors) > 1500
    for one in errors:
        problem = one.response.json()
        assert problem["status"] == one.status
        assert problem["request_id"] == one.response.headers["X-Request-ID"]
