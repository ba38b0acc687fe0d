"""A call: what is sent, and how the answer is read."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.parse import quote

from collidium.client.answers import Answer
from collidium.errors import InvalidInput, NotFound

Result = TypeVar("Result")

PARQUET = "application/vnd.apache.parquet"
#: The header under which a server does a thing only once.
IDEMPOTENCY_KEY = "Idempotency-Key"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,128}")


class Credential(Enum):
    """Which secret a call carries."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 -- a kind of secret, not one
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """One request to the server, and how its answer is read."""

    method: str
    path: str
    read: Callable[[Answer], Result]
    credential: Credential = Credential.TOKEN
    query: Mapping[str, str] = field(default_factory=dict)
    json: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: A file to send as the body.
    upload: Path | None = None

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice does no more than sending it once."""
        return self.method == "GET" or IDEMPOTENCY_KEY in self.headers


def paging(limit: int | None, cursor: str | None) -> dict[str, str]:
    query = {} if limit is None else {"limit": str(limit)}
    return query if cursor is None else {**query, "cursor": cursor}


def filtered(limit: int | None, cursor: str | None, **filters: str | None) -> dict[str, str]:
    """The query of a list of which only a part is asked for."""
    return paging(limit, cursor) | {name: value for name, value in filters.items() if value is not None}


def keyed(key: str | None) -> dict[str, str]:
    """The header that makes a call safe to repeat; without a key it gets one of its own."""
    if key is None:
        key = uuid.uuid4().hex
    if not _KEY.fullmatch(key):
        raise InvalidInput(f"{IDEMPOTENCY_KEY}: 1 to 128 visible ASCII characters")
    return {IDEMPOTENCY_KEY: key}


def segment(name: str) -> str:
    """A name as one segment of a path, whatever characters it has. Raises NotFound for one that cannot be."""
    segment = quote(name, safe="")
    # Clients and proxies resolve these two, and an empty one names another path.
    if segment in {"", ".", ".."}:
        raise NotFound(f"not a name: {name!r}")
    return segment
