"""Lists of the hub's public models, cached for a short time."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from cachetools import TTLCache

from collidium.contracts.identity import USERNAME
from collidium.errors import Unavailable, UnknownCursor, UpstreamError
from collidium.records import HubModel
from collidium.runtime.http_client import HttpClient, NoResponse
from collidium.runtime.limits import CallerLimits
from collidium.runtime.shared_calls import SharedCalls

if TYPE_CHECKING:
    import httpx

#: Time and total number of models that pages are cached for.
KEPT_SECONDS: Final = 30.0
KEPT_MODELS: Final = 10_000
#: Concurrent calls to the hub; further ones wait until the timeout.
CONNECTIONS: Final = 4
#: Rate limits of queries to the hub: burst and per minute of an address, and per minute of all.
QUERIES_BURST, QUERIES_PER_MINUTE, QUERIES_IN_ALL = 60, 60, 300
TIMEOUT_SECONDS: Final = 10.0
#: Models per request, and maximum size of a response.
PAGE: Final = 200
RESPONSE_BYTES: Final = 8 * 1024 * 1024
CURSOR_LENGTH: Final = 512

#: Maximum lengths of a tag or library's name and of a description, and number of tags; the rest is cut.
TAG_LENGTH: Final = 100
DESCRIPTION_LENGTH: Final = 300
TAGS: Final = 50

#: Maximum number of pages of the hub that are read to find models of a task.
PAGES_OF_TASK: Final = 5
_REPO: Final = re.compile(f"{USERNAME.pattern}/{USERNAME.pattern}")
_TASK: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: Larger numbers lose digits in JSON.
_LARGEST_COUNT: Final = 2**53
#: Fields that are requested; others, such as the list of files, may be large.
_FIELDS: Final = (
    *("cardData", "disabled", "downloads", "lastModified", "library_name", "likes", "private", "tags"),
)


@dataclass(frozen=True, slots=True)
class ModelQuery:
    """Filters and page of a list of models; an empty text matches all."""

    #: Part of the repository's name.
    search: str = ""
    tag: str = ""
    #: A benchmark task, which a model names by the tag ``<platform's tag>-task:NAME`` or by ``NAME`` itself.
    task: str = ""
    limit: int = 100
    #: From the previous page.
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class ModelPage:
    """A page of models, the latest first, and the cursor of the next page."""

    models: tuple[HubModel, ...]
    cursor: str | None


class ModelZoo:
    """The hub's public models with a tag. Concurrent equal queries share one request to the hub."""

    def __init__(self, hub: str, tag: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        """``hub`` is its address, ``tag`` the platform's tag."""
        self._hub = hub
        self._tag = tag
        self._http = HttpClient(timeout_seconds, CONNECTIONS)
        kept: TTLCache[ModelQuery, ModelPage] = TTLCache[ModelQuery, ModelPage](
            KEPT_MODELS, KEPT_SECONDS, getsizeof=_weight
        )
        self._pages = SharedCalls(kept, name="models")
        self._limits = CallerLimits(
            "questions about models", QUERIES_BURST, QUERIES_PER_MINUTE, QUERIES_IN_ALL
        )

    async def models(self, query: ModelQuery, address: str | None = None) -> ModelPage:
        """Return a page of models, which may have fewer than ``query.limit`` without being the last.

        ``address`` is the caller's, for the rate limit of queries that are not cached. Raises
        TooManyRequests, UnknownCursor, Unavailable if the hub does not respond, and UpstreamError for an
        invalid response.
        """
        if address is not None and query not in self._pages:
            self._limits.take(address)
        return await self._pages.run(query, lambda: self._ask(query))

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._pages.close()
        await self._http.close()

    async def _ask(self, query: ModelQuery) -> ModelPage:
        # Hubs filter by all tags, not by one of two.
        page = await self._ask_page(query)
        for _ in range(PAGES_OF_TASK - 1):
            if page.models or page.cursor is None:
                break
            page = await self._ask_page(replace(query, cursor=page.cursor))
        return page

    async def _ask_page(self, query: ModelQuery) -> ModelPage:
        response = await ask(self._http, self._hub, "/api/models", self._query(query))
        if response.status_code == 400 and query.cursor:
            # The other parameters are valid on every hub.
            raise UnknownCursor
        if response.status_code != 200:
            raise UpstreamError(f"the hub {self._hub} answered {response.status_code} for models")
        # In a thread: parsing a long list would block the event loop.
        return await asyncio.to_thread(self._found, response, query.task)

    def _query(self, query: ModelQuery) -> tuple[tuple[str, str], ...]:
        return (
            *(("filter", tag) for tag in (self._tag, query.tag) if tag),
            *(("expand", name) for name in _FIELDS),
            *((name, text) for name in ("search", "cursor") if (text := getattr(query, name))),
            ("sort", "lastModified"),
            ("limit", str(min(query.limit, PAGE))),
        )

    def _found(self, response: httpx.Response, task: str) -> ModelPage:
        try:
            models = _read_models(json.loads(response.content), self._hub, self._tag)
        except (ValueError, RecursionError) as error:
            raise UpstreamError(f"the hub {self._hub} sent an invalid response for models") from error
        named = tuple(model for model in models if not task or task in (*model.tasks, *model.tags))
        return ModelPage(named, _cursor(response))


async def ask(http: HttpClient, hub: str, path: str, query: Sequence[tuple[str, str]] = ()) -> httpx.Response:
    """Return a response of at most RESPONSE_BYTES; raises Unavailable for no response, 408, 429 and 5xx."""
    try:
        response = await http.call("GET", hub + path, RESPONSE_BYTES, params=query)
    except NoResponse as error:
        raise Unavailable(f"the hub {hub} {error}: try again later") from None
    if response.status_code in {408, 429} or response.status_code >= 500:
        raise Unavailable(f"the hub {hub} answered {response.status_code}: try again later")
    return response


def _weight(found: ModelPage) -> int:
    return 1 + len(found.models)


def _cursor(response: httpx.Response) -> str | None:
    """The cursor in the link to the next page; the rest of the link is not trusted."""
    try:
        query = urlsplit(response.links.get("next", {}).get("url", "")).query
    except ValueError:
        return None
    cursor = next(iter(parse_qs(query).get("cursor", [])), None)
    return cursor if cursor and len(cursor) <= CURSOR_LENGTH else None


# -- sanitising of text that users of the hub write ---------------------------------------------------------


def _read_models(items: object, hub: str, platform_tag: str) -> tuple[HubModel, ...]:
    """Return the valid public models with the tag in a response. Raises ValueError if it is no list."""
    if not isinstance(items, list):
        raise ValueError("no list")
    found = (_model(item, hub, platform_tag) for item in items if isinstance(item, dict))
    return tuple(model for model in found if model is not None)


def _task_prefix(platform_tag: str) -> str:
    """The prefix of tags for benchmark tasks."""
    return f"{platform_tag}-task:"


def _model(item: dict[str, Any], hub: str, platform_tag: str) -> HubModel | None:
    repo, tags = item.get("id"), _tags(item.get("tags"))
    # The hub should not list these.
    hidden = item.get("private") or item.get("disabled") or platform_tag not in tags
    if hidden or not (isinstance(repo, str) and _REPO.fullmatch(repo)):
        return None
    card = item.get("cardData")
    prefix = _task_prefix(platform_tag)
    return HubModel(
        model_repo=repo,
        author=repo.partition("/")[0],
        updated_at=_moment(item.get("lastModified")),
        tags=tuple(tag for tag in tags if tag != platform_tag and not tag.startswith(prefix)),
        tasks=tuple(_tasks(tags, prefix)),
        description=_line(card.get("description"), DESCRIPTION_LENGTH) if isinstance(card, dict) else None,
        library=_line(item.get("library_name"), TAG_LENGTH),
        likes=_count(item.get("likes")),
        downloads=_count(item.get("downloads")),
        url=f"{hub}/{repo}",
    )


def _tags(value: object) -> Sequence[str]:
    lines = (_line(tag, TAG_LENGTH) for tag in value) if isinstance(value, list) else ()
    return list(dict.fromkeys(tag for tag in lines if tag))[:TAGS]


def _tasks(tags: Sequence[str], prefix: str) -> Iterator[str]:
    for tag in tags:
        if tag.startswith(prefix) and _TASK.fullmatch(name := tag.removeprefix(prefix)):
            yield name


def _line(value: object, longest: int) -> str | None:
    """Text in a single line, without invisible characters."""
    if not isinstance(value, str):
        return None
    # Cut first, as a card may have megabytes.
    shown = (" " if c.isspace() else c for c in value[: 4 * longest] if c.isspace() or _is_shown(c))
    line = " ".join("".join(shown).split())
    return f"{line[: longest - 1]}…" if len(line) > longest else line or None


def _is_shown(character: str) -> bool:
    # Not control, bidirectional formatting, surrogate and private-use characters.
    return unicodedata.category(character)[0] != "C"


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
        return moment.astimezone(UTC) if moment and moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _count(value: object) -> int | None:
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < _LARGEST_COUNT else None
