"""Descriptions of calls, and the decorator that makes methods of both clients from them."""

from __future__ import annotations

import functools
import inspect
import re
import uuid
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, overload
from urllib.parse import quote

from collidium.client.downloads import Download
from collidium.client.responses import Response
from collidium.errors import InvalidInput, NotFound

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])

PARQUET = "application/vnd.apache.parquet"
#: Repeats with the same value of this header have no further effect.
IDEMPOTENCY_KEY = "Idempotency-Key"
_KEY: Final = re.compile(r"[\x21-\x7e]{1,128}")


class Credential(Enum):
    """Which secret a call carries."""

    NONE = "none"
    TOKEN = "token"  # noqa: S105 -- a kind of secret, not one
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """One request to the server, and the function that reads its response."""

    method: str
    path: str
    read: Callable[[Response], Result]
    credential: Credential = Credential.TOKEN
    query: Mapping[str, str | int | bool] = field(default_factory=dict)
    json: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: A file to send as the body.
    upload: Path | None = None
    #: The file that the body of the response is.
    download: Download | None = None
    #: Fields of a form, in which the file is the part named ``part``.
    form: Mapping[str, str] | None = None
    part: str = ""
    #: Reads the address of a resumable upload from the response that creates it.
    resumable: Callable[[Response], str] | None = None
    #: Whether the response may take as long as scoring does.
    scores: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether sending the call twice has the same effect as sending it once."""
        return self.method == "GET" or IDEMPOTENCY_KEY in self.headers


def not_none(**values: Any) -> dict[str, Any]:
    """Return the values that are not None; the server has defaults for the others."""
    return {name: value for name, value in values.items() if value is not None}


def idempotency_header(key: str | None) -> dict[str, str]:
    """Return the header that makes a call safe to repeat, with a generated key unless one is given."""
    if key is None:
        key = uuid.uuid4().hex
    if not _KEY.fullmatch(key):
        raise InvalidInput(f"{IDEMPOTENCY_KEY}: 1 to 128 visible ASCII characters")
    return {IDEMPOTENCY_KEY: key}


def segment(name: str) -> str:
    """Escape a name as one segment of a path. Raises NotFound for a name that cannot be one."""
    segment = quote(name, safe="")
    # Clients and proxies resolve dot segments, and an empty segment changes the path.
    if segment in {"", ".", ".."}:
        raise NotFound(f"not a name: {name!r}")
    return segment


# -- methods of the clients ---------------------------------------------------------------------------


class Blocking:
    """The base of a client whose methods return results."""


class Awaitable:
    """The base of a client whose methods are coroutines."""


class endpoint(Generic[Parameters, Result]):  # noqa: N801 -- a decorator
    """Turn a function that describes a call into a method of both clients with the same parameters."""

    def __init__(self, describe: Callable[Concatenate[Any, Parameters], Call[Result]]) -> None:
        def send(self: Any, *arguments: Parameters.args, **named: Parameters.kwargs) -> Any:
            return self._transport.send(describe(self, *arguments, **named))

        async def send_async(self: Any, *arguments: Parameters.args, **named: Parameters.kwargs) -> Any:
            return await self._transport.send(describe(self, *arguments, **named))

        self._blocking, self._awaitable = _documented(send, describe), _documented(send_async, describe)

    @overload
    def __get__(self, client: None, owner: type) -> Self: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[Parameters, Result]: ...
    @overload
    def __get__(
        self, client: Awaitable, owner: type
    ) -> Callable[Parameters, Coroutine[Any, Any, Result]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        method: Any = self._awaitable if issubclass(owner, Awaitable) else self._blocking
        return method.__get__(client, owner)


def _documented(method: Method, call: Callable[..., Any]) -> Method:
    """Give a method the name, docstring and signature of the function that describes the call."""
    signature = inspect.signature(call)
    result = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
    functools.update_wrapper(method, call)
    vars(method)["__signature__"] = signature.replace(return_annotation=result)
    return method
