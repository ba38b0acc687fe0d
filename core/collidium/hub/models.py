"""Lists the hub's models, and caches its responses for some seconds."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, urlsplit

from cachetools import TTLCache

from collidium.errors import Unavailable, UnknownCursor, UpstreamError
from collidium.hub.model_cards import read_models, task_prefix
from collidium.records import HubModel
from collidium.runtime.http_client import HttpClient, NoResponse
from collidium.runtime.limits import CallerLimits
from collidium.runtime.shared_calls import SharedCalls

if TYPE_CHECKING:
    import httpx

#: How long a page is kept, and how many models in all.
KEPT_SECONDS: Final = 30.0
KEPT_MODELS: Final = 10_000
#: Calls to the hub at one time; further ones wait their turn until the timeout.
CONNECTIONS: Final = 4
#: Questions that the hub has to be asked: of one address at once and in a minute, of all in a minute.
QUESTIONS_BURST, QUESTIONS_PER_MINUTE, QUESTIONS_IN_ALL = 60, 60, 300
#: Seconds that an answer may take.
TIMEOUT_SECONDS: Final = 10.0
#: Models asked for at once; and more bytes than so many take.
PAGE: Final = 200
ANSWER_BYTES: Final = 8 * 1024 * 1024
#: Maximum number of characters of a cursor.
CURSOR_LENGTH: Final = 512

#: Fields that the hub returns of each; others, such as all files, are left out.
_FIELDS: Final = (
    *("cardData", "disabled", "downloads", "lastModified", "library_name", "likes", "private", "tags"),
)


@dataclass(frozen=True, slots=True)
class Question:
    """Which models to list; an empty text matches all."""

    #: Part of the repository's name.
    search: str = ""
    tag: str = ""
    #: A benchmark task that they are tagged with.
    task: str = ""
    limit: int = 100
    #: The start of the page, from the page before.
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class Found:
    """A page of models, the latest first, and the cursor of the next one."""

    models: tuple[HubModel, ...]
    cursor: str | None


class ModelZoo:
    """The hub's public models with a tag.

    Equal queries at the same time cause one request to the hub.
    """

    def __init__(self, hub: str, tag: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """``hub`` is its address; ``tag`` the platform's."""
        self._hub = hub
        self._tag = tag
        self._http = HttpClient(timeout_seconds, CONNECTIONS)
        kept: TTLCache[Question, Found] = TTLCache[Question, Found](
            KEPT_MODELS, KEPT_SECONDS, getsizeof=_weight
        )
        self._pages = SharedCalls(kept)
        self._limits = CallerLimits(
            "questions about models", QUESTIONS_BURST, QUESTIONS_PER_MINUTE, QUESTIONS_IN_ALL
        )

    async def models(self, question: Question, address: str | None = None) -> Found:
        """A page of models; it may have fewer than asked for and still not be the last.

        ``address`` is the caller's: it is limited where the hub has to be asked. Raises TooManyRequests,
        Unavailable while the hub is away, UpstreamError for nonsense, UnknownCursor.
        """
        if address is not None and question not in self._pages:
            self._limits.take(address)
        return await self._pages.run(question, lambda: self._ask(question))

    async def close(self) -> None:
        """Give back connections. Idempotent."""
        await self._pages.close()
        await self._http.close()

    async def _ask(self, question: Question) -> Found:
        try:
            response = await self._http.call(
                "GET", f"{self._hub}/api/models", ANSWER_BYTES, params=self._query(question)
            )
        except NoResponse as error:
            raise Unavailable(f"the hub {self._hub} {error}: try again later") from None
        self._refuse(response, question)
        # Thousands of models are too many to be read between other requests.
        return await asyncio.to_thread(self._found, response)

    def _query(self, question: Question) -> tuple[tuple[str, str], ...]:
        tags = [self._tag, question.tag, question.task and task_prefix(self._tag) + question.task]
        return (
            *(("filter", tag) for tag in tags if tag),
            *(("expand", name) for name in _FIELDS),
            *((name, text) for name in ("search", "cursor") if (text := getattr(question, name))),
            ("sort", "lastModified"),
            ("limit", str(min(question.limit, PAGE))),
        )

    def _refuse(self, response: httpx.Response, question: Question) -> None:
        status = response.status_code
        if status == 200:
            return
        if status == 400 and question.cursor:
            # All else that is asked for has a shape that every hub takes.
            raise UnknownCursor
        detail = f"the hub {self._hub} answered {status} about models"
        if status in {408, 429} or status >= 500:
            raise Unavailable(f"{detail}: try again later")
        raise UpstreamError(detail)

    def _found(self, response: httpx.Response) -> Found:
        try:
            models = read_models(json.loads(response.content), self._hub, self._tag)
        except (ValueError, RecursionError) as error:
            raise UpstreamError(f"the hub {self._hub} answered nonsense about models") from error
        return Found(models, _cursor(response))


def _weight(found: Found) -> int:
    return 1 + len(found.models)


def _cursor(response: httpx.Response) -> str | None:
    """The cursor of the next page; the rest of the address that the hub gives is not trusted."""
    try:
        query = urlsplit(response.links.get("next", {}).get("url", "")).query
    except ValueError:
        return None
    cursor = next(iter(parse_qs(query).get("cursor", [])), None)
    return cursor if cursor and len(cursor) <= CURSOR_LENGTH else None
