"""Shows errors: what was wrong, where, and what to do. Standard error only, never a traceback."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from collidium import errors
from collidium.cli.text import printable

#: What to do about an error, by its kind; the nearest kind counts.
ADVICE: Mapping[type[errors.CollidiumError], str] = {
    errors.Unauthenticated: "log in with `collidium login`, or set HF_TOKEN",
    errors.PaymentRequired: "`collidium me --transactions` shows where your credits went",
    errors.Forbidden: "ask the operators of the server",
    errors.ConfigurationError: "`collidium settings list` shows every setting",
}


def show_error(error: errors.CollidiumError, *, as_json: bool) -> None:
    """The error for a person, or as a problem document for a program."""
    if as_json:
        click.echo(json.dumps(problem(error)), err=True)
        return
    for line in "\n".join(lines(error)).splitlines():
        click.echo(printable(line), err=True)


def show_os_error(error: OSError, *, as_json: bool) -> None:
    """A file that cannot be read or written, a full disk: nothing of ours, still no traceback."""
    where = f"{error.filename}: " if error.filename else ""
    show_error(errors.CollidiumError(f"{where}{error.strerror or error}"), as_json=as_json)


def problem(error: errors.CollidiumError) -> dict[str, Any]:
    """The error as the server would put it; without a status where no server spoke."""
    document: dict[str, Any] = {"type": "about:blank", "title": error.title, "detail": error.detail}
    if isinstance(error, errors.RefusedError):
        document["status"] = error.status
    if error.errors:
        document["errors"] = error.errors
    if error.request_id:
        document["request_id"] = error.request_id
    return document


def lines(error: errors.CollidiumError) -> Iterator[str]:
    """The error for a person, line by line."""
    yield f"Error: {error.detail}"
    for item in error.errors:
        yield from _item_lines(item)
    if advice := _advice(error):
        yield f"What to do: {advice}."
    if error.request_id:
        yield f"The server's operators find it by the request id {error.request_id}."


def _item_lines(item: Mapping[str, Any]) -> Iterator[str]:
    places = [item.get("field"), _labelled(item, "column"), _labelled(item, "event_id", "event")]
    place = ", ".join(str(part) for part in places if part)
    count = item.get("count") or 1
    rows = f" ({count} rows)" if count != 1 else ""
    yield f"  - {place + ': ' if place else ''}{item.get('detail', '')}{rows}"
    for example in item.get("examples") or ():
        yield f"      for example {_example(example)}"


def _labelled(item: Mapping[str, Any], key: str, label: str | None = None) -> str | None:
    return None if item.get(key) is None else f"{label or key} {item[key]}"


def _example(example: object) -> str:
    if isinstance(example, Mapping):
        return ", ".join(f"{name}={value}" for name, value in example.items())
    return str(example)


def _advice(error: errors.CollidiumError) -> str | None:
    wait = error.headers.get("Retry-After", "")
    if wait.isdecimal():  # a proxy may put a date there
        return f"try again in {wait} s"
    if any("column" in item for item in error.errors):
        return "mend the file; `collidium check TASK FILE` tries it and costs nothing"
    return next((ADVICE[kind] for kind in type(error).__mro__ if kind in ADVICE), None)
