"""Idempotency keys: an order or an operator action that is sent again is answered again, and done once.

The key is written in the transaction that does what was asked: both are there or neither is.
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
#: The latest keys of an owner that are remembered.
KEYS_KEPT: Final = 1000


class IdempotencyKey(Model):
    """The answer that a key of an owner was given, None while what was asked is being done."""

    id = fields.BigIntField(primary_key=True)
    # An account or an operator.
    owner = fields.CharField(max_length=128)
    key = fields.CharField(max_length=128)
    # The sha256 of what was asked: the same key with another question is refused.
    question = fields.CharField(max_length=64)
    # JSON.
    answer: str | None = fields.TextField(null=True)

    class Meta(Model.Meta):
        table = "idempotency_keys"
        unique_together = (("owner", "key"),)


async def is_known(owner: str, key: str | None) -> bool:
    """Whether the key has been answered."""
    return key is not None and await IdempotencyKey.filter(owner=owner, key=_checked(key)).exists()


@transactional
async def recall(owner: str, key: str | None, question: object) -> Any:
    """Return the answer that the key was given, or None where it is new.

    In a transaction the key is locked until that ends.

    Parameters
    ----------
    owner : str
        Whose key it is; owners do not share keys.
    key : str or None
        1 to 128 visible ASCII characters. Nothing is known of None.
    question : object
        What is asked for, as JSON can represent it.

    Raises
    ------
    InvalidInput
        For what is no key.
    Conflict
        For a key that was used for something else.
    """
    return answer_in(await together(*claim(owner, key, question)), question)


def claim(owner: str, key: str | None, question: object) -> list[Statement]:
    """The statements of :func:`recall`; :func:`answer_in` reads their row."""
    if key is None:
        return []
    # Waits for another transaction with this key. A known row is locked, so that it is not forgotten now.
    return [
        Statement(
            "INSERT INTO idempotency_keys (owner, key, question) VALUES (?, ?, ?) "
            "ON CONFLICT (owner, key) DO UPDATE SET key = excluded.key RETURNING question, answer",
            (owner, _checked(key), _digest(question)),
        )
    ]


def answer_in(row: Mapping[str, Any], question: object) -> Any:
    """The answer that a key was given, or None; raises Conflict."""
    if "question" in row and row["question"] != _digest(question):
        raise Conflict("this Idempotency-Key was used for another request; use a new one")
    return json.loads(row.get("answer") or "null")


@transactional
async def remember(owner: str, key: str | None, answer: object) -> None:
    """Keep the answer, which is not None, to what was asked; in the transaction that :func:`recall` began."""
    await together(*keep(owner, key, answer))


def keep(owner: str, key: str | None, answer: object) -> list[Statement]:
    """The statements of :func:`remember`."""
    if key is None:
        return []
    return [
        Statement(
            "UPDATE idempotency_keys SET answer = ? WHERE owner = ? AND key = ?",
            (json.dumps(answer), owner, key),
        ),
        # Some answers cost nothing, so the keys of an owner would grow without end.
        Statement(
            "DELETE FROM idempotency_keys WHERE owner = ? AND id <= "
            "(SELECT id FROM idempotency_keys WHERE owner = ? ORDER BY id DESC LIMIT 1 OFFSET ?)",
            (owner, owner, KEYS_KEPT),
        ),
    ]


async def forget(owner: str, name: str) -> None:
    """Forget the keys of an owner, and those with answers that have ``name`` as a value."""
    quoted = json.dumps(json.dumps(name))[1:-1]
    await IdempotencyKey.filter(Q(owner=owner) | Q(answer__icontains=quoted)).delete()


def _digest(question: object) -> str:
    return hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()


def _checked(key: str) -> str:
    if not KEY.fullmatch(key):
        raise InvalidInput("Idempotency-Key: 1 to 128 visible ASCII characters")
    return key
