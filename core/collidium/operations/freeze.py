"""The kill switch: while it is on, no new simulation request is accepted."""

from __future__ import annotations

from collidium.database import transactional
from collidium.operations.models import GlobalConfig

_ROW = "platform"


async def is_frozen() -> bool:
    """Whether submissions are frozen, for those who only want to know."""
    return (await GlobalConfig.get(name=_ROW)).submissions_frozen


@transactional
async def set_frozen(frozen: bool) -> None:
    """Turn the kill switch."""
    config = await GlobalConfig.select_for_update().get(name=_ROW)
    config.submissions_frozen = frozen
    await config.save()
