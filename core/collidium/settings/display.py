"""Settings of the event display: how much of a dataset is read, sent and kept."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings

from collidium.settings.values import MEBIBYTE


class DisplaySettings(BaseSettings):
    """How single events of datasets are shown."""

    event_bytes: int = Field(
        48 * MEBIBYTE,
        ge=MEBIBYTE,
        le=64 * MEBIBYTE,
        description="Largest event that is shown, as it is sent.",
    )
    event_read_bytes: int = Field(
        256 * MEBIBYTE, ge=MEBIBYTE, description="Most bytes of a dataset that are read to show an event."
    )
    event_cache_bytes: int = Field(
        64 * MEBIBYTE, ge=0, description="Memory of a server process for events that were shown before."
    )
