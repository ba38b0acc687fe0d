"""How a refund is asked for."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AwareDatetime, BeforeValidator, Field, WithJsonSchema

from collidium.api.schemas.base import Body, Text, example

_RFC3339: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?([Zz]|[+-][0-9]{2}:[0-9]{2})"
)


def _written(value: object) -> object:
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise ValueError("not a time as RFC 3339 writes it, such as 2026-11-21T09:00:00Z")
    return value


Time = Annotated[
    AwareDatetime, BeforeValidator(_written), WithJsonSchema({"type": "string", "format": "date-time"})
]


class RefundsBody(Body):
    """Which failures are refunded: those from ``from`` until before ``to``."""

    model_config = example(**{"from": "2026-11-21T09:00:00Z", "to": "2026-11-21T11:30:00Z"})

    begin: Time = Field(alias="from")
    end: Time = Field(alias="to", description="At most 31 days later.")
    apply: bool = Field(False, strict=True, description="Without it, nothing is paid: a preview.")
    digest: str | None = Field(None, max_length=64, description="To apply: that of the preview.")
    note: Text | None = Field(None, description="Kept as the entries' note, and in the audit log.")
