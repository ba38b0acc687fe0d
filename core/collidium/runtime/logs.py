"""Logging with the id of the HTTP request, and clean-up of other programs' text for logs and timelines."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, Literal

from collidium.runtime import descriptors

#: Maximum length of a line of another program's text.
_LONGEST: Final = 200

#: The id of the request being handled, empty outside one; set by the API.
http_request_id: ContextVar[str] = ContextVar("http_request_id", default="")
#: The calling account and the current simulation request, empty if none.
account: ContextVar[str] = ContextVar("account", default="")
simulation: ContextVar[str] = ContextVar("simulation", default="")


class _Complete(logging.Filter):
    """Add the request's id to records, and replace messages that cannot be formatted."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.http_request_id = http_request_id.get() or "-"
        record.account, record.simulation = account.get(), simulation.get()
        try:
            record.getMessage()
        except BaseException:  # a third-party class may raise anything
            record.msg, record.args = f"{record.msg} (its arguments cannot be formatted)", None
        return True


#: Characters that could forge log lines.
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}


class TextFormatter(logging.Formatter):
    """Formats a record as one line, with control characters escaped, and its traceback below."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- the library's name
        return super().formatMessage(record).translate(_ESCAPES)

    def formatException(self, ei: Any) -> str:  # noqa: N802 -- the library's name
        # Indented, so that no line of an error's message looks like a log line.
        return "\n".join(f"  {line.translate(_ESCAPES)}" for line in super().formatException(ei).splitlines())


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": getattr(record, "http_request_id", "-"),
        }
        for name in ("account", "simulation"):
            if value := getattr(record, name, ""):
                line[name] = value
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def configure(level: str, style: Literal["text", "json"]) -> None:
    """Log to standard error, at ``level`` and above."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_Complete())
    handler.addFilter(descriptors.FewLines())
    handler.setFormatter(
        JsonFormatter()
        if style == "json"
        else TextFormatter("%(asctime)s %(levelname)-7s %(name)s [%(http_request_id)s] %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Libraries that log every call or statement, with values that may be private; and Hypercorn's logger,
    # which logs the server's address a second time.
    clients = ("httpx", "httpcore", "httpx2", "httpcore2", "boto3", "botocore", "s3transfer", "urllib3")
    chatty_loggers = (*clients, "tortoise", "tortoise.db_client", "aiosqlite", "asyncio")
    for chatty in (*chatty_loggers, "hypercorn.error"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    logging.getLogger("botocore.credentials").setLevel(logging.ERROR)  # its warnings quote responses


def single_line(text: str) -> str:
    """Return the text in a single line, without control characters, shortened."""
    words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def message_of(error: BaseException) -> str:
    """Return the message of an error, also if a plugin's class fails to make one."""
    try:
        return str(error)
    except BaseException:  # a third-party class may raise anything
        return "(it has no readable message)"


def last_line(text: str) -> str:
    """Return the last line that is not empty, in which programs report their error."""
    lines = [line for line in text.splitlines() if line.strip()]
    return single_line(lines[-1]) if lines else "no reason given"
