"""How a webhook is set."""

from __future__ import annotations

from pydantic import Field

from collidium.api.schemas.base import Body, example
from collidium.outbox import LONGEST_URL


class WebhookBody(Body):
    """How an account wants to be notified."""

    model_config = example({"url": "https://hooks.example.org/collidium"}, strict=True)

    url: str | None = Field(
        None,
        max_length=LONGEST_URL,
        description="HTTPS address notified of every request; null: none. Left out, it stays as it is.",
    )
    rotate_secret: bool = Field(False, description="Make a new signing secret; the old one ends at once.")
