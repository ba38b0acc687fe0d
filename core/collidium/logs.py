"""Log lines with the id of the HTTP request that they belong to."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Literal

#: The id of the request being handled, empty outside one; set by the API.
http_request_id: ContextVar[str] = ContextVar("http_request_id", default="")


class _WithRequestId(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.http_request_id = http_request_id.get() or "-"
        return True


class JsonFormatter(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": getattr(record, "http_request_id", "-"),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def configure(level: str, style: Literal["text", "json"]) -> None:
    """Send all logging to standard error, at ``level`` and above."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_WithRequestId())
    handler.setFormatter(
        JsonFormatter()
        if style == "json"
        else logging.Formatter("%(asctime)s %(levelname)-7s %(name)s [%(http_request_id)s] %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Those of libraries that log every call or statement, with values that may be private, stay quiet.
    for chatty in ("httpx", "httpcore", "tortoise", "tortoise.db_client", "aiosqlite", "asyncio"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
