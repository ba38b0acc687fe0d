"""Idempotency keys: a repeated order or operator action gets the first answer and has no further effect.

The key is stored in the transaction of the action.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from tortoise import fields
from tortoise.expressions import Q
from tortoise.models import Model

from collidium.database import Statement, together, transactional
from collidium.errors import Conflict, InvalidInput

KEY: Final = re.compile(r"[\x21-\x7e]{1,128}")
#: Number of latest keys that are stored per owner.
KEYS_KEPT: Final = 1000


class IdempotencyKey(Model):
    """The answer that a key of an owner was given, None while what was asked is being done."""

    id = fields.BigIntField(primary_key=True)
    # An account or an operator.
    owner = fields.CharField(max_length=128)
    key = fields.CharField(max_length=128)
    # sha256 of the request: the same key with another request is rejected.
    question = fields.CharField(max_length=64)
    # JSON.
    answer: str | None = fields.TextField(null=True)

    class Meta(Model.Meta):
        table = "idempotency_keys"
        unique_together = (("owner", "key"),)


async def is_known(owner: str, key: str | None) -> bool:
    """Whether the key was used."""
    return key is not None and await IdempotencyKey.filter(owner=owner, key=checked(key)).exists()


@transactional
async def recall(owner: str, key: str | None, question: object) -> Any:
    """Return the answer to the first request with this key, or None for a new key.

    Within a transaction the key is locked until it ends.

    Parameters
    ----------
    owner : str
        Owners do not share keys.
    key : str or None
        1 to 128 visible ASCII characters; None is always new.
    question : object
        The request, as JSON can represent it.

    Raises
    ------
    InvalidInput
        If the key is malformed.
    Conflict
        If the key was used for another request.
    """
    return answer_in(await together(*claim(owner, key, question)), question)


def claim(owner: str, key: str | None, question: object) -> list[Statement]:
    """Return the statements of :func:`recall`; :func:`answer_in` reads their row."""
    if key is None:
        return []
    # Waits for other transactions with this key. The update locks an existing row against deletion.
    return [
        Statement(
            "INSERT INTO idempotency_keys (owner, key, question) VALUES (?, ?, ?) "
            "ON CONFLICT (owner, key) DO UPDATE SET key = excluded.key RETURNING question, answer",
            (owner, checked(key), _digest(question)),
        )
    ]


def answer_in(row: Mapping[str, Any], question: object) -> Any:
    """Return the stored answer of a row, or None; raises Conflict."""
    if "question" in row and row["question"] != _digest(question):
        raise Conflict("this Idempotency-Key was used for another request; use a new one")
    return json.loads(row.get("answer") or "null")


@transactional
async def remember(owner: str, key: str | None, answer: object) -> None:
    """Store the answer, which must not be None, in the transaction of :func:`recall`."""
    await together(*keep(owner, key, answer))


def keep(owner: str, key: str | None, answer: object) -> list[Statement]:
    """Return the statements of :func:`remember`."""
    if key is None:
        return []
    return [
        Statement(
            "UPDATE idempotency_keys SET answer = ? WHERE owner = ? AND key = ?",
            (json.dumps(answer), owner, key),
        ),
        # Not all answers cost something, so the number of keys needs a limit.
        Statement(
            "DELETE FROM idempotency_keys WHERE owner = ? AND id <= "
            "(SELECT id FROM idempotency_keys WHERE owner = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
            (owner, owner, KEYS_KEPT),
        ),
    ]


async def forget(owner: str, name: str) -> None:
    """Delete the keys of an owner, and those whose answers contain ``name`` as a value."""
    quoted = json.dumps(json.dumps(name))[1:-1]
    await IdempotencyKey.filter(Q(owner=owner) | Q(answer__icontains=quoted)).delete()


def _digest(question: object) -> str:
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()


def checked(key: str) -> str:
    """Return the key. Raises InvalidInput if it is malformed."""
    if not KEY.fullmatch(key):
        detail = "1 to 128 visible ASCII characters"
        InvalidInput.raise_for([{"field": "Idempotency-Key", "detail": detail}])
    return key
