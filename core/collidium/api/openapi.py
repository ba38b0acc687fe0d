"""The OpenAPI document at ``/openapi.json``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from inspect import cleandoc
from typing import Any, TypeVar, cast, get_args, get_origin

from msgspec.json import schema_components
from pydantic import TypeAdapter
from quart import Quart, current_app, redirect
from quart.json.provider import DefaultJSONProvider
from quart.typing import ResponseReturnValue
from quart_schema import (
    APIKeySecurityScheme,
    HttpSecurityScheme,
    Info,
    OpenAPIProvider,
    QuartSchema,
    Server,
    Tag,
    hide,
)
from quart_schema.openapi import QUART_SCHEMA_OPERATION_ID_ATTRIBUTE
from werkzeug.routing.rules import Rule

from collidium.api import documented_errors
from collidium.api.answers import JSON
from collidium.api.authentication import scope_of
from collidium.api.bodies.receive import FORM, PARTIAL
from collidium.api.schemas import NO_NULL, Problem
from collidium.overrides import quart_schema

F = TypeVar("F", bound=Callable[..., Any])

#: Documented paths; plugins document their own.
DOCUMENTED = ("/v1/", "/admin/", "/healthz", "/readyz")

#: Groups of operations by audience.
TAG_GROUPS = {
    "Public": ("benchmark", "datasets", "models", "health"),
    "Account": ("account", "simulation", "webhooks", "notifications"),
    "Operators": ("admin",),
}

#: Groups of operations, in the order of the document.
TAGS = {
    "account": "The caller's account and ledger.",
    "simulation": "Orders of simulated events.",
    "webhooks": "Where an account is notified over HTTPS.",
    "notifications": "What an account is notified of, and its e-mail address.",
    "benchmark": "Tasks, submissions and leaderboards.",
    "models": "Models on the hub.",
    "datasets": "Public datasets, and single events of them.",
    "admin": "What operators do.",
    "health": "Whether the server runs.",
}

#: Tags of blueprints that have another name.
_TAG_OF = {
    "accounts": "account",
    "benchmarks": "benchmark",
    "challenges": "benchmark",
    "evaluations": "benchmark",
    "leaderboards": "benchmark",
    "simulations": "simulation",
    "teams": "benchmark",
    "uploads": "benchmark",
}

PARQUET = "application/vnd.apache.parquet"

_BINARY = {"type": "string", "format": "binary"}
_PREDICTIONS_FORM = {
    "type": "object",
    "required": ["predictions"],
    "properties": {"predictions": _BINARY, "model_repo": {"type": "string", "maxLength": 200}},
}
_MODEL_FORM = {
    "type": "object",
    "required": ["model", "manifest"],
    "properties": {"model": _BINARY, "manifest": {"type": "string"}},
}
_EVENT_CONTENT = {
    "application/vnd.apache.arrow.stream": {"schema": _BINARY},
    "application/json": {"schema": {"type": "object"}},
}

_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")

_REFERENCE = "#/components/schemas/{name}"

_BODY = "_collidium_body"
_ANSWER = "_collidium_answer"
_TABLE = "_collidium_table"
_EMPTY = "_collidium_empty"


def _documents(what: str, content: object) -> Callable[[F], F]:
    """Return a decorator that attaches documentation to a handler."""

    def decorate(handler: F) -> F:
        setattr(handler, what, content)
        return handler

    return decorate


#: Bodies: a parquet file, also in a form; a form with a model and its manifest; data appended to an upload.
predictions_body = _documents(
    _BODY,
    {
        PARQUET: {"schema": _BINARY},
        "application/octet-stream": {"schema": _BINARY},
        FORM: {"schema": _PREDICTIONS_FORM},
    },
)
#: A parquet file alone: openapi-python-client makes no module of several bodies without another parameter.
file_body = _documents(_BODY, {PARQUET: {"schema": _BINARY}})
model_body = _documents(_BODY, {FORM: {"schema": _MODEL_FORM}})
partial_body = _documents(_BODY, {PARTIAL: {"schema": _BINARY}})
parquet_answer = _documents(_ANSWER, {"description": "The file.", "content": {PARQUET: {"schema": _BINARY}}})
#: An event, as Arrow or for Phoenix.
event_answer = _documents(_ANSWER, {"description": "The event.", "content": _EVENT_CONTENT})
#: Server-sent events.
stream_answer = _documents(
    _ANSWER,
    {"description": "The events.", "content": {"text/event-stream": {"schema": {"type": "string"}}}},
)
#: Responses of uploads without content. That which begins one (201) is in the text of `submit` alone: else
#: generated clients give each receipt a type that may be empty.
upload_state = _documents(_EMPTY, {"204": {"description": "The state of the upload, in headers."}})
upload_ended = _documents(_EMPTY, {"204": {"description": "The upload is deleted."}})
#: A table as well.
table_answer = _documents(_TABLE, {"text/csv": {"schema": {"type": "string"}}})


class Provider(OpenAPIProvider):
    """Adds to quart-schema's document: file bodies, required query parameters, scopes and errors."""

    def generate_rules(self) -> Iterable[Rule]:
        return (rule for rule in super().generate_rules() if rule.rule.startswith(DOCUMENTED))

    def schema(self) -> dict[str, Any]:
        document = super().schema()
        problem = TypeAdapter(Problem).json_schema(ref_template=_REFERENCE.format(name="{model}"))
        document["components"]["schemas"].update(problem.pop("$defs"))
        document["components"]["schemas"]["Problem"] = problem
        document["components"]["responses"] = documented_errors.responses()
        document["x-tagGroups"] = [{"name": name, "tags": tags} for name, tags in TAG_GROUPS.items()]
        return document

    def build_response_object(self, model: Any, headers_model: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Refer to the shared schema of a record, or of the records of a list."""
        record = get_args(model)[0] if get_origin(model) is list else model
        (schema,), components = schema_components([model], ref_template=_REFERENCE)
        described = {
            "description": cleandoc(record.__doc__).splitlines()[0],
            "content": {JSON: {"schema": schema}},
        }
        return described, {name: _as_answered(shape) for name, shape in components.items()}

    def operation_id(self, method: str, path: str, func: Callable[..., Any]) -> str:
        """Return the name of the client's method; operators' calls begin with ``admin_``."""
        name = getattr(func, QUART_SCHEMA_OPERATION_ID_ATTRIBUTE, func.__name__)
        return f"admin_{name}" if path.startswith("/admin/") else name

    def build_querystring_parameters(self, model: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        parameters, definitions = super().build_querystring_parameters(model)
        for parameter in parameters:
            parameter["required"] = model.model_fields[parameter["name"]].is_required()
            schema = parameter["schema"]
            forms = [schema, *schema.get("anyOf", ())]
            is_text = any(form.get("type") == "string" for form in forms)
            if is_text and not any(form.keys() & {"pattern", "enum", "format"} for form in forms):
                schema["pattern"] = NO_NULL  # as of all addresses
        return parameters, definitions

    def build_headers_parameters(self, model: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        parameters, definitions = super().build_headers_parameters(model)
        for parameter, described in zip(parameters, model.model_fields.values(), strict=True):
            parameter["required"] = described.is_required()
        return parameters, definitions

    def build_paths(self, rule: Rule) -> tuple[dict[str, Any], dict[str, Any]]:
        written, components = super().build_paths(rule)
        # quart-schema drops the path before a parameter with a converter.
        paths = {_PARAMETER.sub(r"{\1}", rule.rule): operations for operations in written.values()}
        handler = current_app.view_functions[rule.endpoint]
        blueprint = rule.endpoint.partition(".")[0]
        for operation in (operation for path in paths.values() for operation in path.values()):
            operation["responses"] = {
                str(status): answer for status, answer in operation["responses"].items()
            }
            operation["tags"] = [_TAG_OF.get(blueprint, blueprint)]
            if blueprint == "admin":
                operation["security"] = [{"admin_token": [scope_of(rule.rule)]}]
            operation.setdefault("security", [])  # everyone's
            if (body := getattr(handler, _BODY, None)) is not None:
                operation["requestBody"] = {"content": body}
            if "requestBody" in operation:
                operation["requestBody"]["required"] = True
            if (answer := getattr(handler, _ANSWER, None)) is not None:
                operation["responses"]["200"] = answer
            if (table := getattr(handler, _TABLE, None)) is not None:
                operation["responses"]["200"]["content"] |= table
            operation["responses"] |= getattr(handler, _EMPTY, {})
            operation["responses"] |= documented_errors.of_operation(operation, handler)
        return paths, components


def install(app: Quart, version: str) -> None:
    """Serve the document."""
    plain = app.make_response
    QuartSchema(
        app,
        swagger_ui_path=None,
        redoc_ui_path=None,
        scalar_ui_path=None,
        info=Info(title="Collidium", version=version),
        security_schemes={
            "hub_token": HttpSecurityScheme(scheme="bearer"),
            "admin_token": APIKeySecurityScheme(name="X-Admin-Token", in_="header"),
        },
        servers=[Server(url="/")],  # relative to the document
        tags=[Tag(name, description) for name, description in TAGS.items()],
        conversion_preference="pydantic",
        openapi_provider_class=Provider,
    )
    quart_schema.convert_models_only(app, plain)
    # Keep the order of media types: client generators use the first.
    cast(DefaultJSONProvider, app.json).sort_keys = False


def redirect_front_page(app: Quart) -> None:
    """Redirect ``/`` to the OpenAPI document, if no plugin provides a front page."""

    @app.get("/")
    @hide
    async def front() -> ResponseReturnValue:
        return redirect("/openapi.json")


def _as_answered(shape: Any) -> Any:
    """Adapt a schema to responses: all fields are present, and decimals are numbers."""
    if isinstance(shape, list):
        return [_as_answered(item) for item in shape]
    if not isinstance(shape, dict):
        return shape
    if shape.get("format") == "decimal":
        shape = {**shape, "type": "number", "format": "double"}
    found = {name: _as_answered(part) for name, part in shape.items() if name != "default"}
    if "prefixItems" in found:
        # Tuples have items of one type, and client generators do not support `prefixItems`.
        found["items"] = found.pop("prefixItems")[0]
    if "properties" in found:
        found["required"] = list(found["properties"])
    return found
