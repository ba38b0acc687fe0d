"""The page of the site with every call of the API, from the OpenAPI document."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from collidium import settings
from collidium.api.app import create_app
from collidium_plugins.webapps.api_reference import Field, Operation, sections


def http_reference() -> str:
    """Markdown: calls by who may make them and by group, with the fields of what goes in and comes out."""
    document = asyncio.run(_document())
    lines = [
        "# Calls of the API",
        "",
        "As in the OpenAPI document, which a server has at `/openapi.json`.",
        "",
    ]
    for audience, credential, groups in sections(document):
        lines += [f"## {audience}", "", credential, ""]
        for operation in (operation for group in groups.values() for operation in group):
            lines += _call(operation)
    return "\n".join(lines)


async def _document() -> Mapping[str, Any]:
    with TemporaryDirectory() as directory:
        app = create_app(settings.load(data_dir=Path(directory)))
        answer = await app.test_client().get("/openapi.json")
        found: Mapping[str, Any] = await answer.get_json()
    return found


def _call(operation: Operation) -> Iterator[str]:
    described = operation.described
    yield from (f"### `{operation.method} {operation.path}`", "", described["summary"], "")
    yield from (described.get("description", "").strip(), "")
    if operation.scopes:
        yield from (f"**Scope** `{', '.join(operation.scopes)}`", "")
    if operation.parameters:
        yield from ("**Parameters**", "", *_table([field for _, field in operation.parameters]))
    for media, fields in operation.bodies:
        yield from (f"**Body** `{media}`", "", *_table(fields))
    for status, meaning, fields in operation.responses:
        yield from (f"**{status}** {meaning}", "", *_table(fields))
    errors = "; ".join(f"{status}: {meaning}" for status, meaning in operation.errors)
    if errors:
        yield from (f"**Errors** {errors}", "")


def _table(fields: Sequence[Field]) -> Iterator[str]:
    if fields:
        yield from ("| field | type | limits | meaning |", "|---|---|---|---|")
    for field in fields:
        limits, text = (
            " ".join(one.split()).replace("|", "\\|") for one in (field.limits, field.description)
        )
        yield f"| `{field.name}` | {field.type} | {limits} | {text} |"
    yield ""
