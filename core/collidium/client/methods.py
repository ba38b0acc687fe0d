"""Calls as methods: each call is described once, and both clients have it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from collidium.client.calls import Call

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Method = TypeVar("Method", bound=Callable[..., Any])


def sends(call: Callable[Parameters, Call[Result]]) -> Callable[Concatenate[Any, Parameters], Result]:
    """Return a method of ``Client`` with the call's parameters and docstring."""

    def method(self: Any, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        answer: Result = self._transport.send(call(*arguments, **named))
        return answer

    return _described(method, call)


def sends_async(
    call: Callable[Parameters, Call[Result]],
) -> Callable[Concatenate[Any, Parameters], Coroutine[Any, Any, Result]]:
    """Return a method of ``AsyncClient`` with the call's parameters and docstring."""

    async def method(self: Any, /, *arguments: Parameters.args, **named: Parameters.kwargs) -> Result:
        answer: Result = await self._transport.send(call(*arguments, **named))
        return answer

    return _described(method, call)


def _described(method: Method, call: Callable[..., Any]) -> Method:
    """Give a method the name, the docstring and the signature that ``help`` shows."""
    signature = inspect.signature(call)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    result = str(signature.return_annotation).removeprefix("Call[").removesuffix("]")
    method.__name__ = method.__qualname__ = call.__name__
    method.__module__ = call.__module__
    method.__doc__ = call.__doc__
    vars(method)["__signature__"] = signature.replace(
        parameters=[own, *signature.parameters.values()], return_annotation=result
    )
    return method
