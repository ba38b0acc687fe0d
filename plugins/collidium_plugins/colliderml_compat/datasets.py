"""The public datasets on the hub that carry the platform's tag."""

from __future__ import annotations

from itertools import islice
from time import monotonic
from typing import TYPE_CHECKING, Final

from cachetools import TLRUCache

from collidium.errors import Unavailable
from collidium.hub.client import Hub, HubError
from collidium.runtime.shared_calls import SharedCalls

if TYPE_CHECKING:
    from huggingface_hub import HfApi

#: Maximum number of datasets listed, the newest.
MAXIMUM: Final = 1000
#: How long the hub may take, its list is given out again, and the hub is left alone after an error.
HUB_SECONDS: Final = 10.0
KEPT_SECONDS: Final = 60.0
REST_SECONDS: Final = 5.0


class TaggedDatasets:
    """The list; concurrent calls share one request to the hub."""

    def __init__(self) -> None:
        self._calls: SharedCalls[tuple[str, str], list[str] | None] = SharedCalls(
            TLRUCache(
                1, lambda _, names, now: now + (REST_SECONDS if names is None else KEPT_SECONDS), monotonic
            )
        )

    async def names(self, hub_url: str, tag: str) -> list[str]:
        """Names of repositories, the newest first; raises Unavailable."""
        names = await self._calls.run((hub_url, tag), lambda: self._ask(hub_url, tag))
        if names is None:
            raise Unavailable("the hub does not list its datasets; try again soon", retry_after=5)
        return names

    async def _ask(self, hub_url: str, tag: str) -> list[str] | None:
        def listed(api: HfApi) -> list[str]:
            found = api.list_datasets(filter=tag, sort="created_at", limit=MAXIMUM)
            return [dataset.id for dataset in islice(found, MAXIMUM)]

        try:
            # Without a token: public datasets alone.
            return await Hub(hub_url, token="").ask(listed, HUB_SECONDS)
        except HubError:
            return None
