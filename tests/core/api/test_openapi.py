"""The OpenAPI document is accurate, and no input that it allows or forbids causes a 5xx."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import httpx
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.counts import LONG

from collidium.client.calls import Calls
from collidium.contracts.identity import USERNAME
from collidium.operations import Scope
from collidium.outbox import HTTPS
from collidium.submissions import teams
from collidium.testing.server import ServerProcess

from .conftest import ok
from .contract import operations_of

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,unsupported_method,ignored_auth"
)

#: A server of its own: operators' calls are tried, too.
PLATFORM: dict[str, str] = {}
#: Tried for each operation, as each check takes them.
EXAMPLES = 20 if LONG else 2
#: Sequences of calls repeat what each call was tried with.
PHASES = "examples,coverage,fuzzing,stateful" if LONG else "examples,coverage,fuzzing"
#: Makes bodies of parquet and of uploads.
HOOKS = Path(__file__).with_name("file_bodies.py")
#: One call that is tried freezes orders, and some tasks have no truth: 503 is what the document says then.
CONFIGURATION = """
[[operations]]
include-path-regex = "/(simulate|check|submit|from-hub|model)$"
[operations.checks.not_a_server_error]
expected-statuses = ["2xx", "4xx", "503"]
"""


NO_NULL, NO_CONTROL = r"^[^\x00]*$", r"^[^\x00-\x1f\x7f]*$"
TEXT = {"minLength": 1, "maxLength": 1000, "pattern": NO_NULL}
REPO = f"{USERNAME.pattern}/{USERNAME.pattern}"
#: By the name of a field of several operations, or by an operation and its field.
LIMITS: dict[str, dict[str, Any]] = {
    "limit": {"minimum": 1, "maximum": 1000},
    "cursor": {"maxLength": 512, "pattern": NO_NULL},
    "Idempotency-Key": {"pattern": r"^([\x21-\x7e]{1,128})$"},
    "public_percent": {"minimum": 1, "maximum": 99},
    "submissions_per_day": {"minimum": 1, "maximum": 10_000},
    "title": {"maxLength": 200, "pattern": NO_CONTROL},
    "rules": {"maxLength": 50_000, "pattern": NO_NULL},
    "reason": TEXT,
    "note": TEXT,
    "announcement": TEXT,
    "code_url": {"maxLength": 500, "pattern": f"^({HTTPS.pattern})$"},
    "admin_daily days": {"minimum": 1, "maximum": 3660},
    "models search": {"maxLength": 200, "pattern": NO_CONTROL},
    "models tag": {"maxLength": 200, "pattern": NO_CONTROL},
    "models task": {"pattern": r"^([a-z][a-z0-9_]{0,63})?$"},
    "submit model_repo": {"maxLength": 200, "pattern": f"^(({REPO})?)$"},
    "submit_from_hub model_repo": {"maxLength": 200, "pattern": f"^({REPO})$"},
    "new_team name": {"minLength": 1, "maxLength": 64, "pattern": f"^({teams.NAME.pattern})$"},
    "simulate preset": {"maxLength": 64},
    "admin_add_members hub_usernames": {"minItems": 1, "maxItems": 500},
}


@pytest.mark.timeout(900)  # a minute of CPU, and six minutes where others take most of the machine
def test_no_input_makes_a_5xx_and_answers_are_documented(platform: ServerProcess) -> None:
    configuration = platform.directory / "schemathesis.toml"
    configuration.write_text(f'hooks = "{HOOKS}"\n{CONFIGURATION}')
    run = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", f"--config-file={configuration}"),
            *("run", f"{platform.base_url}/openapi.json"),
            f"--header=Authorization: Bearer {platform.add_user('alice')}",
            f"--header=X-Admin-Token: {platform.admin_token}",
            f"--checks={CHECKS}",
            f"--max-examples={EXAMPLES}",
            f"--phases={PHASES}",
            "--exclude-path-regex=/progress$",  # a stream lasts as long as its request
            "--seed=1",
            "--request-timeout=100",  # a slow answer under load is none of the checks
            "--continue-on-failure",
            "--no-color",
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=platform.directory,
        timeout=840,
    )
    assert run.returncode == 0, run.stdout[-6000:]


@pytest.fixture
def document(anonymous: httpx.Client) -> Any:
    return ok(anonymous.get("/openapi.json"))


def test_the_document_is_valid_and_names_calls_as_the_client(document: Any) -> None:
    assert not list(OpenAPIV31SpecValidator(document).iter_errors())
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    names = [operation["operationId"] for operation in operations]
    called = {name for name in dir(Calls) if not name.startswith("_")} | {"check", "submit"}
    # A download and streams, which no client has, and what it calls by the address of a task.
    others = {"admin_output_file", "request_progress", "evaluation_progress"}
    others |= {"upload_offset", "append_to_upload", "cancel_upload"}  # `submit` calls them
    others |= {"challenge_leaderboard", "challenge_history", "check_for_challenge", "submit_to_challenge"}
    assert sorted(names) == sorted(called - {"openapi"} | others)
    groups = {group["name"] for group in document["tags"]}
    assert all(operation["tags"] and set(operation["tags"]) <= groups for operation in operations)


def test_limits_of_fields_are_these(document: Any) -> None:
    """Those of many fields, by name and of all operations that have them, and some of one operation."""
    found = defaultdict[str, list[Any]](list)
    for operation in operations_of(document):
        for one in operation.inputs:
            if one.place != "path":
                limits = [limits_of(one.schema)]
                found[one.name] += limits
                found[f"{operation.name} {one.name}"] += limits
    assert {name: found[name] for name in LIMITS} == {
        name: [limits] * len(found[name]) for name, limits in LIMITS.items() if found[name]
    }


def limits_of(schema: Any) -> dict[str, Any]:
    """The limits of a value that is not null."""
    kinds = {"minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern"}
    given = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    merged = dict(item for one in (schema, *given) for item in one.items())
    return {name: value for name, value in merged.items() if name in kinds}


def test_the_document_names_servers_and_credentials(document: Any) -> None:
    """What `redocly lint` asks for in its rules no-empty-servers and security-defined."""
    assert document["servers"] == [{"url": "/"}]
    known = document["components"]["securitySchemes"].keys()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert "security" in operation, (method, path)
            assert {name for wanted in operation["security"] for name in wanted} <= known
            if path.startswith("/admin/"):
                ((name, (scope,)),) = operation["security"][0].items()
                assert (name, scope in set(Scope)) == ("admin_token", True)


def test_answers_share_the_schemas_of_records(document: Any) -> None:
    answers = document["paths"]["/v1/simulate"]["post"]["responses"]
    for status in ("200", "202"):
        schema = answers[status]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/SimulationRequest"}
    account = document["components"]["schemas"]["Account"]
    assert account["properties"]["credits"]["type"] == "number"
    assert set(account["required"]) == set(account["properties"])  # answers have every field
    event = document["paths"]["/v1/datasets/{config}/events/{event_id}"]["get"]["responses"]["200"]
    assert "application/vnd.apache.arrow.stream" in event["content"]


def test_every_operation_says_what_it_is_for(document: Any) -> None:
    operations = [operation for path in document["paths"].values() for operation in path.values()]
    assert len(operations) >= 30
    for operation in operations:
        assert operation["summary"].endswith("."), operation
        assert "default" in operation["responses"]
    submit = document["paths"]["/v1/benchmark/{task}/submit"]["post"]
    assert submit["requestBody"]["required"]
    assert "/admin/requests/{request_id}/output/{path}" in document["paths"]
    assert set(submit["requestBody"]["content"]) == {
        "application/vnd.apache.parquet",
        "application/octet-stream",
        "multipart/form-data",
    }
