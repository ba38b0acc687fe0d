"""The OpenAPI document as calls of operations, and values at both sides of each limit of a schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final

import httpx
from jsonschema import Draft202012Validator, FormatChecker

Schema = Mapping[str, Any]

METHODS: Final = frozenset({"GET", "PUT", "POST", "PATCH", "DELETE"})
JSON: Final = "application/json"
FORM: Final = "multipart/form-data"
#: Length of a text that has no declared maximum, in a body that is not too large.
LONG_TEXT: Final = 10_000
#: What an integer without a declared maximum is tried with.
LARGE_NUMBER: Final = 2**63

FORMATS: Final = FormatChecker(())


@FORMATS.checks("date-time", raises=ValueError)
def _is_time(value: object) -> bool:
    """A time with a time zone, in the years that the API's description names."""
    if not isinstance(value, str):
        return True
    moment = datetime.fromisoformat(value)
    return moment.tzinfo is not None and 2000 <= moment.year < 2200


@dataclass(frozen=True)
class Input:
    """A parameter (``path``, ``query``, ``header``) or a field of the ``body`` of an operation."""

    place: str
    name: str
    schema: Schema
    is_required: bool


@dataclass(frozen=True)
class Operation:
    """An operation of the document, with one of the kinds of bodies of JSON that it takes."""

    path: str
    method: str
    described: Schema
    document: Schema = field(repr=False)
    #: The schema of its body of JSON; empty without one.
    body: Schema = field(repr=False)

    @property
    def name(self) -> str:
        return str(self.described["operationId"])

    @property
    def credential(self) -> str:
        """The name of its security scheme; empty for none."""
        return next((name for wanted in self.described["security"] for name in wanted), "")

    @property
    def scopes(self) -> Sequence[str]:
        """The scopes that it requires of an operator."""
        return [scope for wanted in self.described["security"] for scope in wanted["admin_token"]]

    @property
    def errors(self) -> frozenset[int]:
        """The statuses of the errors that it declares."""
        statuses = (int(status) for status in self.described["responses"] if status != "default")
        return frozenset(status for status in statuses if status >= 400)

    @cached_property
    def inputs(self) -> Sequence[Input]:
        """Its parameters, and the fields of its body of JSON."""
        parameters = [
            Input(one["in"], one["name"], resolved(one["schema"], self.document), one["required"])
            for one in self.described.get("parameters", ())
        ]
        required = self.body.get("required", ())
        return parameters + [
            Input("body", name, resolved(schema, self.document), name in required)
            for name, schema in self.body.get("properties", {}).items()
        ]

    @property
    def _content(self) -> Schema:
        content: Schema = self.described.get("requestBody", {}).get("content", {})
        return content

    @property
    def media_type(self) -> str | None:
        """The media type of its body, None without one."""
        return next(iter(self._content), None)

    @property
    def example(self) -> dict[str, Any] | None:
        """A body of JSON."""
        return dict(next(iter(self.body.get("examples", ())), {})) if self.body else None

    def validator(self, status: int) -> Draft202012Validator:
        """What validates responses of JSON with that status."""
        responses = self.described["responses"]
        content = resolved(responses[str(status)], self.document)["content"]
        schema = next(one["schema"] for name, one in content.items() if name.endswith("json"))
        return Draft202012Validator({**schema, "components": self.document["components"]})


@dataclass(frozen=True)
class Call:
    """A request of an operation."""

    operation: Operation
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    def with_value(self, one: Input, value: Any) -> Call:
        """The same with a value of an input."""
        return self._changed(one, lambda values: {**values, one.name: value})

    def without(self, one: Input) -> Call:
        """The same without an input."""
        return self._changed(
            one, lambda values: {name: value for name, value in values.items() if name != one.name}
        )

    def _changed(self, one: Input, change: Any) -> Call:
        where = "headers" if one.place == "header" else one.place
        return replace(self, **{where: change(getattr(self, where) or {})})

    def sent(
        self, client: httpx.Client, content: bytes | None = None, headers: Sequence[tuple[str, str]] = ()
    ) -> httpx.Response:
        """The response to it, with another ``content`` than its body, or with further headers."""
        operation = self.operation
        body: dict[str, Any] = {}
        if self.body is not None and content is None:
            body = {"json": self.body}
        elif operation.media_type is not None:
            body = {"content": content or b""}
            media_type = operation.media_type
            if media_type == FORM:
                part = b'--x\r\nContent-Disposition: form-data; name="manifest"\r\n\r\n'
                media_type, body["content"] = f"{FORM}; boundary=x", part + body["content"] + b"\r\n--x--\r\n"
            headers = [*headers, ("Content-Type", self.headers.get("Content-Type", media_type))]
        own = {name: value for name, value in self.headers.items() if name != "Content-Type"}
        return client.request(
            operation.method,
            operation.path.format_map(self.path),
            params={name: _written(value) for name, value in self.query.items()},
            headers=[*headers, *((name, _written(value)) for name, value in own.items())],
            **body,
        )


@dataclass(frozen=True)
class Answer:
    """What the server answered, and which part of the contract that is about."""

    operation: Operation
    about: str
    response: httpx.Response

    @property
    def status(self) -> int:
        return self.response.status_code

    def names(self, field: str) -> bool:
        """Whether it is a problem of the field."""
        if self.status not in {400, 422}:
            return False
        fields = [str(error.get("field")) for error in self.response.json().get("errors", ())]
        return field.lower() in {name.lower().replace("_", "-").partition(".")[0] for name in fields} | {
            name.partition(".")[0] for name in fields
        }

    def __str__(self) -> str:
        sent = self.response.request
        call = f"{sent.method} {str(sent.url)[:200]} {sent.content[:150]!r}"
        return f"{call}: {self.about[:200]}: {self.status} {self.response.text[:200]}"


def _written(value: Any) -> str:
    """A value as a query or a header has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def operations_of(document: Schema) -> list[Operation]:
    """All operations of the document, one for each kind of body."""
    return [
        Operation(path, method.upper(), described, document, body)
        for path, methods in document["paths"].items()
        for method, described in methods.items()
        for body in _bodies(described, document)
    ]


def _bodies(described: Schema, document: Schema) -> Sequence[Schema]:
    """The schemas of a body of JSON: an empty one without a body."""
    content = described.get("requestBody", {}).get("content", {})
    schema = resolved(content.get(JSON, {}).get("schema", {}), document)
    alternatives: Sequence[Schema] = schema.get("anyOf", [schema])
    return alternatives


def resolved(schema: Schema, document: Schema) -> Schema:
    """The schema that a reference names, with those of its alternatives."""
    if "anyOf" in schema:
        return {**schema, "anyOf": [resolved(one, document) for one in schema["anyOf"]]}
    if "$ref" not in schema:
        return schema
    found: Any = document
    for name in schema["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return resolved(found, document)


def with_limits(document: Schema, limits: Mapping[str, Any]) -> Schema:
    """The document with the limits of orders that the server has, of ``GET /v1/limits``."""
    changed: Any = deepcopy(document)
    estimate = changed["paths"]["/v1/estimate"]["get"]["parameters"]
    schemas = changed["components"]["schemas"]
    for properties in (
        schemas["ChannelBody"]["properties"],
        schemas["PresetBody"]["properties"],
        {parameter["name"]: parameter["schema"] for parameter in estimate},
    ):
        if "channel" in properties:
            properties["channel"]["enum"] = limits["channels"]
        for name in properties.keys() & {"events", "pileup", "seed"}:
            properties[name].update(limits[name])
    return changed


def is_valid(schema: Schema, value: Any) -> bool:
    """Whether the schema allows the value."""
    return bool(Draft202012Validator(schema, format_checker=FORMATS).is_valid(value))


def example_of(schema: Schema, name: str, examples: Mapping[str, Any]) -> Any:
    """A value that the schema allows."""
    first = _alternatives(schema)[0]
    for value in (examples.get(name), schema.get("default"), *first.get("enum", ())):
        if value is not None and is_valid(schema, value):
            return value
    others = {"integer": first.get("minimum", 1), "number": 1, "boolean": False, "array": [], "object": {}}
    return others.get(first["type"], "a" * max(1, first.get("minLength", 1)))


def at_limits(schema: Schema, example: Any) -> Iterator[Any]:
    """Different values at both sides of each limit, and at those that a schema may lack."""
    seen = set()
    for one in _alternatives(schema):
        for value in _of_type(one, example):
            if repr(value) not in seen:
                seen.add(repr(value))
                yield value


def is_limited(schema: Schema) -> bool:
    """Whether the schema refuses what is very large."""
    huge = ("a" * 100_000, -(10**40), 10**40, ["a"] * 100_000)
    return not any(is_valid(schema, value) for value in huge)


def _alternatives(schema: Schema) -> list[Schema]:
    return [one for one in schema.get("anyOf", [schema]) if one.get("type") != "null"]


def _of_type(schema: Schema, example: Any) -> Iterator[Any]:
    if "enum" in schema:
        yield from (*schema["enum"], "no-such-value")
    elif schema["type"] in {"integer", "number"}:
        least, most = schema.get("minimum", 0), schema.get("maximum", LARGE_NUMBER)
        yield from (least - 1, least, most, most + 1, example)
        if schema["type"] == "integer":
            yield from (least + 0.5, "many")
    elif schema["type"] == "boolean":
        yield from (True, False, "perhaps")
    elif schema.get("format") == "date-time":
        yield from ("1999-12-31T23:00:00+00:00", "2199-12-30T00:00:00+00:00", "2200-01-02T00:00:00+00:00")
        yield from ("2030-01-01T00:00:00", "yesterday")
    elif schema["type"] == "string":
        yield from _texts(schema, str(example))
    elif schema["type"] == "array":
        item = example[0] if example else "a"
        for size in _around(schema.get("minItems", 0), schema.get("maxItems", 10)):
            yield [item] * size
        for value in at_limits(schema["items"], item):
            yield [value]


def _texts(schema: Schema, example: str) -> Iterator[str]:
    example = example or "a"
    for size in _around(schema.get("minLength", 0), schema.get("maxLength", LONG_TEXT)):
        yield example[:size].ljust(size, example[-1])
    yield from (example, "a\x00b", "a\nb", "é", " ", "../..")


def _around(least: int, most: int) -> list[int]:
    return [size for size in (least - 1, least, most, most + 1) if size >= 0]
