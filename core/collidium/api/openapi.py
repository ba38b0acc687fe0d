"""The OpenAPI document at ``/openapi.json`` and a page of it for people at ``/docs``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from pydantic import TypeAdapter
from quart import Quart, redirect, render_template
from quart.typing import ResponseReturnValue
from quart_schema import APIKeySecurityScheme, HttpSecurityScheme, Info, OpenAPIProvider, QuartSchema, hide
from werkzeug.routing.rules import Rule

from collidium.api.problems import MEDIA_TYPE
from collidium.api.schemas import Problem

F = TypeVar("F", bound=Callable[..., Any])

#: What the document describes; plugins document their own mounts.
DOCUMENTED = ("/v1/", "/admin/", "/healthz", "/readyz")

PARQUET = "application/vnd.apache.parquet"

_EVENT_CONTENT = {
    "application/vnd.apache.arrow.stream": {"schema": {"type": "string", "format": "binary"}},
    "application/json": {"schema": {"type": "object"}},
}

_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")

_PART = "_collidium_file_part"
_FILE = "_collidium_file_answer"
_EVENT = "_collidium_event_answer"


def predictions_body(part: str) -> Callable[[F], F]:
    """Say that a handler takes a parquet file, as the body itself or as the form part ``part``."""

    def decorate(handler: F) -> F:
        setattr(handler, _PART, part)
        return handler

    return decorate


def parquet_answer(handler: F) -> F:
    """Say that a handler answers with a parquet file."""
    setattr(handler, _FILE, True)
    return handler


def event_answer(handler: F) -> F:
    """Say that a handler answers with an event, as Arrow or for Phoenix."""
    setattr(handler, _EVENT, True)
    return handler


class Provider(OpenAPIProvider):
    """Adds what quart-schema cannot know: file bodies, required queries, problem documents."""

    def generate_rules(self) -> Iterable[Rule]:
        return (rule for rule in super().generate_rules() if rule.rule.startswith(DOCUMENTED))

    def schema(self) -> dict[str, Any]:
        document = super().schema()
        problem = TypeAdapter(Problem).json_schema(ref_template="#/components/schemas/{model}")
        document["components"]["schemas"].update(problem.pop("$defs"))
        document["components"]["schemas"]["Problem"] = problem
        return document

    def build_querystring_parameters(self, model: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        parameters, definitions = super().build_querystring_parameters(model)
        for parameter in parameters:
            parameter["required"] = model.model_fields[parameter["name"]].is_required()
        return parameters, definitions

    def build_paths(self, rule: Rule) -> tuple[dict[str, Any], dict[str, Any]]:
        written, components = super().build_paths(rule)
        # quart-schema loses what stands before a parameter with a converter.
        paths = {_PARAMETER.sub(r"{\1}", rule.rule): operations for operations in written.values()}
        handler = self._app.view_functions[rule.endpoint]
        part = getattr(handler, _PART, None)
        for operation in (operation for path in paths.values() for operation in path.values()):
            operation["responses"] = {
                str(status): answer for status, answer in operation["responses"].items()
            }
            operation["responses"]["default"] = {
                "description": "What went wrong.",
                "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
            }
            if part is not None:
                operation["requestBody"] = _file_body(part)
            if "requestBody" in operation:
                operation["requestBody"]["required"] = True
            if hasattr(handler, _FILE):
                content = {PARQUET: {"schema": {"type": "string", "format": "binary"}}}
                operation["responses"]["200"] = {"description": "The file.", "content": content}
            if hasattr(handler, _EVENT):
                operation["responses"]["200"] = {"description": "The event.", "content": _EVENT_CONTENT}
        return paths, components


def install(app: Quart, version: str) -> None:
    """Serve the document and the page."""
    schema = QuartSchema(
        app,
        swagger_ui_path=None,
        redoc_ui_path=None,
        scalar_ui_path=None,
        info=Info(title="Collidium", version=version),
        security_schemes={
            "hub_token": HttpSecurityScheme(scheme="bearer"),
            "admin_token": APIKeySecurityScheme(name="X-Admin-Token", in_="header"),
        },
        conversion_preference="pydantic",
        openapi_provider_class=Provider,
    )

    @app.get("/docs")
    @hide
    async def docs() -> str:
        return await render_template("docs.html", document=schema.openapi_provider.schema())


def lead_to_docs(app: Quart) -> None:
    """Let the printed address lead somewhere, where nobody brings a front page."""

    @app.get("/")
    @hide
    async def front() -> ResponseReturnValue:
        return redirect("/docs")


def _file_body(part: str) -> dict[str, Any]:
    file = {"type": "string", "format": "binary"}
    form = {
        "type": "object",
        "required": [part],
        "properties": {part: file, "model_repo": {"type": "string", "maxLength": 200}},
    }
    return {
        "content": {PARQUET: {"schema": file}, "multipart/form-data": {"schema": form}},
    }
