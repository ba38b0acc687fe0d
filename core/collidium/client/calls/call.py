"""A call: what is sent, and how the response is read; and methods of both clients made from calls."""

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

from collidium.client.answers import Answer
from collidium.errors import InvalidInput, NotFound

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])

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
    query: Mapping[str, str | int | bool] = field(default_factory=dict)
    json: Mapping[str, object] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: A file to send as the body.
    upload: Path | None = None
    #: Fields of a form, whose part ``part`` is then the file.
    form: Mapping[str, str] | None = None
    part: str = ""
    #: Where a server takes a file in several requests: reads where they go.
    resumable: Callable[[Answer], str] | None = None
    #: Whether the answer may take as long as scoring does.
    scores: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether sending it twice does no more than sending it once."""
        return self.method == "GET" or IDEMPOTENCY_KEY in self.headers


def given(**values: Any) -> dict[str, Any]:
    """Those that are not None, as a query or a body; the server has a default for each that is missing."""
    return {name: value for name, value in values.items() if value is not None}


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


# -- methods of the clients ---------------------------------------------------------------------------


class Blocking:
    """The base of a client whose methods return results."""


class Awaitable:
    """The base of a client whose methods are coroutines."""


class endpoint(Generic[Parameters, Result]):  # noqa: N801 -- a decorator
    """Make a method of both clients, with these parameters, from a function that describes a call."""

    def __init__(self, describe: Callable[Concatenate[Any, Parameters], Call[Result]]) -> None:
        def send(self: Any, *arguments: Parameters.args, **named: Parameters.kwargs) -> Any:
            return self._transport.send(describe(self, *arguments, **named))

        async def send_async(self: Any, *arguments: Parameters.args, **named: Parameters.kwargs) -> Any:
            return await self._transport.send(describe(self, *arguments, **named))

        self._blocking, self._awaitable = _described(send, describe), _described(send_async, describe)

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


def _described(method: Method, call: Callable[..., Any]) -> Method:
    """Give a method the name, the docstring and the signature that ``help`` shows."""
    signature = inspect.signature(call)
    result = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
    functools.update_wrapper(method, call)
    vars(method)["__signature__"] = signature.replace(return_annotation=result)
    return method
