"""How errors are shown on standard error: what was wrong, where, and what to do."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from collidium import errors
from collidium.cli.output import printable, width_of, wrapped

#: What to do about an error, by its class or the nearest base class.
ADVICE: Mapping[type[errors.CollidiumError], str] = {
    errors.Unauthenticated: "log in with `collidium login`, or set HF_TOKEN",
    errors.PaymentRequired: "`collidium me --transactions` shows what your credits were spent on",
}
#: What to do about a missing task or challenge, by the call that the server's message names.
LISTS = {
    "/v1/benchmark/tasks": "`collidium tasks` lists the tasks of the server",
    "/v1/challenges": "`collidium challenge list` lists the challenges of the server",
}

#: The command that checks a file of predictions.
CHECK = "collidium check TASK FILE"


def show_error(error: errors.CollidiumError, *, as_json: bool, check: str | None = CHECK) -> None:
    """Print an error as text, or as a problem document (RFC 9457) if ``as_json``.

    ``check`` is the command to recommend for checking the file; None: recommend none.
    """
    if as_json:
        click.echo(json.dumps(problem(error)), err=True)
        return
    width = width_of(sys.stderr)
    for line in "\n".join(lines(error, check=check)).splitlines():
        text = printable(line)
        indent = text[: len(text) - len(text.lstrip(" -"))]
        shown = wrapped(text[len(indent) :], width, first=indent, rest=" " * max(len(indent), 2))
        click.echo(shown, err=True)


def show_os_error(error: OSError, *, as_json: bool) -> None:
    """Print an error of a file or disk."""
    where = f"{error.filename}: " if error.filename else ""
    if data_dir := _data_dir_around(error.filename):
        where = f"PLATFORM_DATA_DIR: {data_dir} cannot be used: "
    show_error(errors.CollidiumError(f"{where}{error.strerror or error}"), as_json=as_json)


def _data_dir_around(filename: object) -> Path | None:
    """Return the data directory if the file is in it, or is one of its parents."""
    from collidium import settings

    if not isinstance(filename, str | os.PathLike):
        return None
    try:
        data_dir = settings.load().data_dir.absolute()
    except errors.ConfigurationError:
        return None
    path = Path(filename).absolute()
    return data_dir if path.is_relative_to(data_dir) or path in data_dir.parents else None


def problem(error: errors.CollidiumError) -> dict[str, Any]:
    """Return an error as a problem document, with a status if it is a server's."""
    document: dict[str, Any] = {"type": "about:blank", "title": error.title, "detail": error.detail}
    if isinstance(error, errors.RefusedError):
        document["status"] = error.status
    if error.errors:
        document["errors"] = error.errors
    if error.request_id:
        document["request_id"] = error.request_id
    if error.idempotency_key:
        document["idempotency_key"] = error.idempotency_key
    return document


def lines(error: errors.CollidiumError, *, check: str | None = CHECK) -> Iterator[str]:
    """Yield the lines of an error, each detail once."""
    repeated = all(str(item.get("detail", "")) in error.detail for item in error.errors)
    if len(error.errors) == 1 and repeated:
        (item,) = error.errors
        yield f"Error: {_item_text(item) if _location(item) else error.detail}"
        yield from _examples(item)
    else:
        yield f"Error: {_heading(error) if error.errors and repeated else error.detail}"
        for item in error.errors:
            yield f"  - {_item_text(item)}"
            yield from _examples(item)
    if advice := _advice(error, check):
        yield f"What to do: {advice}."
    if error.idempotency_key:
        repeat = f"repeat the command with --idempotency-key {error.idempotency_key}: it is done at most once"
        yield f"It is unknown whether it was done; {repeat}."
    if error.request_id:
        yield f"Request id, for the server's operators: {error.request_id}."


def _heading(error: errors.CollidiumError) -> str:
    """Return the first line for several problems, with what precedes the first of them in the message."""
    subject = error.detail.partition(str(error.errors[0].get("detail", "")))[0].rstrip(": ")
    if subject == _location(error.errors[0]):
        subject = ""
    number = f"{len(error.errors)} problems"
    return f"{subject}: {number}" if subject else number


def _item_text(item: Mapping[str, Any]) -> str:
    location = _location(item)
    count = item.get("count") or 1
    rows = f" ({count} rows)" if count != 1 else ""
    return f"{location + ': ' if location else ''}{item.get('detail', '')}{rows}"


def _location(item: Mapping[str, Any]) -> str:
    column, event = _labelled(item, "column"), _labelled(item, "event_id", "event")
    return ", ".join(
        str(part) for part in (_labelled(item, "line"), item.get("field"), column, event) if part
    )


def _examples(item: Mapping[str, Any]) -> Iterator[str]:
    for example in item.get("examples") or ():
        yield f"      for example {_example(example)}"


def _labelled(item: Mapping[str, Any], key: str, label: str | None = None) -> str | None:
    return None if item.get(key) is None else f"{label or key} {item[key]}"


def _example(example: object) -> str:
    if isinstance(example, Mapping):
        return ", ".join(f"{name}={value}" for name, value in example.items())
    return str(example)


def _advice(error: errors.CollidiumError, check: str | None) -> str | None:
    wait = error.headers.get("Retry-After", "")
    if wait.isdecimal():  # a proxy may send a date
        return f"try again in {wait} s"
    if any("column" in item for item in error.errors):
        return f"fix the file; `{check}` checks it free of charge" if check else None
    if isinstance(error, errors.NotFound) and (
        found := [LISTS[call] for call in LISTS if call in error.detail]
    ):
        return found[0]
    if isinstance(error, errors.ConfigurationError) and error.errors:
        return "correct or unset it; `collidium settings list` then shows every setting"
    if "collidium login" in error.detail:
        return None
    if error.headers.get("WWW-Authenticate") == "X-Admin-Token":
        return "set ADMIN_TOKEN to what the file admin-token in the server's data directory holds"
    return next((ADVICE[kind] for kind in type(error).__mro__ if kind in ADVICE), None)
