"""No path makes the server fail: every route, with each segment over-long, empty, NUL and non-ASCII."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from werkzeug.routing import Rule

from collidium import settings
from collidium.api.app import create_app
from collidium.testing.server import ServerProcess

from .conftest import ok, operating, signed_in

#: One more than names of challenges have, and more than any; empty, NUL, other scripts.
SEGMENTS = ["x" * 65, "x" * 300, "", "x%00", quote("\u202e名" * 30)]
#: Watching does not end.
STREAMS = {"simulations.watch"}


@pytest.fixture
def client(platform: ServerProcess) -> Iterator[httpx.Client]:
    """A client with the tokens of an account and of an operator."""
    with signed_in(platform, "alice") as alice, operating(platform) as admin:
        alice.headers.update({"X-Admin-Token": admin.headers["X-Admin-Token"]})
        yield alice


def bodies(document: Any) -> dict[tuple[str, str], Any]:
    """The example of each operation's body, by the rule of its path and its method."""
    found = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            schema = content.get("schema", {})
            name = schema.get("$ref", "").rpartition("/")[2]
            schema = document["components"]["schemas"].get(name, schema)
            found[path.replace("{", "<").replace("}", ">"), method.upper()] = schema.get("example", {})
    return found


def filled(rule: Rule, segment: str, argument: str) -> str:
    """The path of a rule whose ``argument`` is a segment; the others have valid names."""
    parts = []
    for is_dynamic, data in rule._trace:
        if data == "|":
            continue
        parts.append((segment if data == argument else "tracking") if is_dynamic else data)
    return "".join(parts).partition("?")[0]


def test_no_segment_of_a_path_makes_a_route_fail(
    platform: ServerProcess, client: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rules = create_app(settings.load(data_dir=tmp_path_factory.mktemp("app"))).url_map.iter_rules()
    examples = bodies(ok(client.get("/openapi.json")))
    failed, called = [], 0
    for rule in rules:
        if rule.endpoint in STREAMS or not rule.arguments:
            continue
        for argument in sorted(rule.arguments):
            for segment in SEGMENTS:
                path = filled(rule, segment, argument)
                for method in sorted((rule.methods or set()) - {"HEAD", "OPTIONS"}):
                    body = examples.get((rule.rule, method))
                    answer = client.request(method, path, json=body)
                    called += 1
                    if answer.status_code >= 500:
                        failed.append((method, rule.rule, argument, segment[:20], answer.status_code))
    assert called > 500
    assert failed == []
