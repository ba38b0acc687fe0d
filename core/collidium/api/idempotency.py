"""A decorator for operator actions: one transaction each, performed once per Idempotency-Key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Concatenate

from pydantic import BaseModel
from quart import Response, request
from quart_schema import document_headers

from collidium.accounts import idempotency
from collidium.api.answers import JSON
from collidium.api.authentication import OperatorCaller, find_operator
from collidium.api.schemas import IdempotencyHeaders
from collidium.database import transactional
from collidium.runtime.failpoints import reached

Action = Callable[Concatenate[OperatorCaller, ...], Awaitable[Response]]


def idempotent(action: Action) -> Callable[..., Awaitable[Response]]:
    """Give an action its operator, perform it once per key and repeat its first answer.

    Place it below decorators that validate.
    """

    @document_headers(IdempotencyHeaders)
    @wraps(action)
    async def once(**arguments: object) -> Response:
        status, document = await _first_answer(action, arguments)
        reached("operate.after_commit")
        return Response(document, status, content_type=JSON)

    return once


@transactional
async def _first_answer(action: Action, arguments: dict[str, object]) -> tuple[int, str]:
    # Check again: the token may have been withdrawn while the request was read.
    caller = await find_operator()
    owner, key = f"operator:{caller.operator.name}", request.headers.get("Idempotency-Key")
    question = [request.endpoint, {name: _plain(value) for name, value in arguments.items()}]
    answered = await idempotency.recall(owner, key, question)
    if answered is None:
        response = await action(caller, **arguments)
        answered = response.status_code, await response.get_data(as_text=True)
        await idempotency.remember(owner, key, answered)
        reached("operate.before_commit")
    status, document = answered
    return status, document


def _plain(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value
