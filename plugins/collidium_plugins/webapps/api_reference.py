"""``/docs``: the API reference, rendered from the OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quart import Response

from collidium_plugins.webapps.context import Route, backend
from collidium_plugins.webapps.rendering import render

#: Name and description of the callers of an operation, by the credential that it requires.
AUDIENCES: Final = {
    "": ("Public", "Without an account."),
    "hub_token": ("Account", "With your hub token: Authorization: Bearer TOKEN."),
    "admin_token": ("Operator", "With the operators' secret: X-Admin-Token."),
}

Schema = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of a request body or of a response."""

    name: str
    type: str
    required: bool
    description: str
    #: Its range, length, values and pattern; empty: any.
    limits: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path."""

    method: str
    path: str
    described: Schema
    #: The scopes that it requires of an operator.
    scopes: Sequence[str]
    #: Place and field of each parameter.
    parameters: Sequence[tuple[str, Field]]
    #: Media type and fields of each accepted body.
    bodies: Sequence[tuple[str, Sequence[Field]]]
    #: Status, meaning and fields of each response of its own.
    responses: Sequence[tuple[str, str, Sequence[Field]]]
    #: Status and meaning of the errors, which are problem documents.
    errors: Sequence[tuple[str, str]]


async def show() -> Response:
    """``GET /docs``"""
    document = await backend().openapi()
    return await render(
        "api-reference.html",
        sections=sections(document),
        tags={tag["name"]: tag["description"] for tag in document["tags"]},
        api_version=document["info"]["version"],
    )


def sections(document: Schema) -> Sequence[tuple[str, str, Mapping[str, Sequence[Operation]]]]:
    """Return name, credential and operations by tag for each of :data:`AUDIENCES`."""
    operations: dict[str, dict[str, list[Operation]]] = {credential: {} for credential in AUDIENCES}
    for path, methods in document["paths"].items():
        for method, described in methods.items():
            required = next(iter(described.get("security", [])), {"": ()})
            ((credential, scopes),) = required.items()
            group = operations[credential].setdefault(described["tags"][0], [])
            group.append(_operation(method, path, described, scopes, document))
    return [(*AUDIENCES[credential], groups) for credential, groups in operations.items()]


def _operation(
    method: str, path: str, described: Schema, scopes: Sequence[str], document: Schema
) -> Operation:
    bodies = described.get("requestBody", {}).get("content", {})
    return Operation(
        method.upper(),
        path,
        described,
        scopes,
        [
            (one["in"], _field(one["name"], one["schema"], one["required"], one.get("description"), document))
            for one in described.get("parameters", ())
        ],
        [(media, _unique(_fields(body["schema"], document))) for media, body in bodies.items()],
        [
            (status, response["description"], _unique(_response_fields(response, document)))
            for status, response in described["responses"].items()
            if "$ref" not in response
        ],
        [
            (status, _resolved(response, document)["description"])
            for status, response in described["responses"].items()
            if "$ref" in response
        ],
    )


def _unique(fields: Iterable[Field]) -> Sequence[Field]:
    """Remove duplicate fields, which several variants of a body may have."""
    return list({field.name: field for field in fields}.values())


def _response_fields(response: Schema, document: Schema) -> Iterator[Field]:
    for content in response.get("content", {}).values():
        yield from _fields(content["schema"], document)


def _fields(schema: Schema, document: Schema) -> Iterator[Field]:
    """The fields of an object, of the items of a list, or of all variants of a body."""
    schema = _resolved(schema, document)
    for form in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])):
        yield from _fields(form, document)
    for name, field in schema.get("properties", {}).items():
        required = name in schema.get("required", ())
        yield _field(name, field, required, field.get("description"), document)


def _field(name: str, schema: Schema, required: bool, text: str | None, document: Schema) -> Field:
    limits = "; ".join(dict.fromkeys(_limits(schema, document)))
    return Field(name, _type(schema), required, text or "", limits)


def _resolved(schema: Schema, document: Schema) -> Schema:
    if "$ref" not in schema:
        return schema
    kind, name = str(schema["$ref"]).split("/")[-2:]
    found: Schema = document["components"][kind][name]
    return found


def _limits(schema: Schema, document: Schema) -> Iterator[str]:
    """What a value may be: its range, its length, its values and its pattern, in backticks."""
    schema = _resolved(schema, document)
    for form in (*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])):
        yield from _limits(form, document)
    if "enum" in schema:
        yield ", ".join(f"`{value}`" for value in schema["enum"])
    for suffix, unit in (("imum", ""), ("Length", " characters"), ("Items", " items")):
        lowest, highest = schema.get(f"min{suffix}"), schema.get(f"max{suffix}")
        if lowest is not None and highest is not None:
            yield f"{lowest} to {highest}{unit}"
        elif highest is not None:
            yield f"at most {highest}{unit}"
        elif lowest is not None:
            yield f"at least {lowest}{unit}"
    if "pattern" in schema:
        yield f"`{schema['pattern']}`"


def _type(schema: Schema) -> str:
    """A type as text: ``integer``, ``list of string``, ``Submission or null``."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(form) for form in schema["anyOf"]))
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    name: str = schema.get("$ref", "").rpartition("/")[2] or schema.get("type", "any")
    return name


ROUTES: Final[list[Route]] = [("GET", "", show)]
