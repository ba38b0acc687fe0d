"""Lists the hub's models and shows cards of its repositories, as anyone sees them; kept for some seconds."""

from __future__ import annotations

import asyncio
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

from cachetools import TTLCache

from collidium.contracts.identity import USERNAME
from collidium.errors import NotFound, Unavailable, UnknownCursor, UpstreamError
from collidium.records import HubModel, RepoCard
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
#: Queries that go to the hub: of one address at once and in a minute, of all in a minute.
QUERIES_BURST, QUERIES_PER_MINUTE, QUERIES_IN_ALL = 60, 60, 300
#: Seconds that a response may take.
TIMEOUT_SECONDS: Final = 10.0
#: Models of one request; and more bytes than so many take.
PAGE: Final = 200
RESPONSE_BYTES: Final = 8 * 1024 * 1024
#: Maximum number of characters of a cursor.
CURSOR_LENGTH: Final = 512

#: Characters of a tag or a library's name, of a description, and tags of one model; the rest is left out.
TAG_LENGTH: Final = 100
DESCRIPTION_LENGTH: Final = 300
TAGS: Final = 50

_REPO: Final = re.compile(f"{USERNAME.pattern}/{USERNAME.pattern}")
_TASK: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")
#: Numbers beyond these lose digits in JSON.
_LARGEST_COUNT: Final = 2**53
#: Fields that the hub returns of each; others, such as all files, are left out.
_FIELDS: Final = (
    *("cardData", "disabled", "downloads", "lastModified", "library_name", "likes", "private", "tags"),
)

#: The kinds of repositories, as the hub's addresses have them.
KINDS: Final = ("datasets", "models")
#: Characters of a card that are kept, and files that are named.
CARD_LENGTH: Final = 64 * 1024
CARD_FILES: Final = 200

_CARD_SECONDS: Final = 30.0
_KEPT_CARDS: Final = 200
_REPO_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class ModelQuery:
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
class ModelPage:
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
        kept: TTLCache[ModelQuery, ModelPage] = TTLCache[ModelQuery, ModelPage](
            KEPT_MODELS, KEPT_SECONDS, getsizeof=_weight
        )
        self._pages = SharedCalls(kept, name="models")
        self._limits = CallerLimits(
            "questions about models", QUERIES_BURST, QUERIES_PER_MINUTE, QUERIES_IN_ALL
        )

    async def models(self, query: ModelQuery, address: str | None = None) -> ModelPage:
        """A page of models; it may have fewer than asked for and still not be the last.

        ``address`` is the caller's: it is limited where the hub has to be asked. Raises TooManyRequests,
        Unavailable while the hub is away, UpstreamError for nonsense, UnknownCursor.
        """
        if address is not None and query not in self._pages:
            self._limits.take(address)
        return await self._pages.run(query, lambda: self._ask(query))

    async def close(self) -> None:
        """Give back connections. Idempotent."""
        await self._pages.close()
        await self._http.close()

    async def _ask(self, query: ModelQuery) -> ModelPage:
        response = await ask(self._http, self._hub, "/api/models", self._query(query))
        if response.status_code == 400 and query.cursor:
            # All else that is asked for has a shape that every hub takes.
            raise UnknownCursor
        if response.status_code != 200:
            raise UpstreamError(f"the hub {self._hub} answered {response.status_code} about models")
        # Thousands of models are too many to be read between other requests.
        return await asyncio.to_thread(self._found, response)

    def _query(self, query: ModelQuery) -> tuple[tuple[str, str], ...]:
        tags = [self._tag, query.tag, query.task and _task_prefix(self._tag) + query.task]
        return (
            *(("filter", tag) for tag in tags if tag),
            *(("expand", name) for name in _FIELDS),
            *((name, text) for name in ("search", "cursor") if (text := getattr(query, name))),
            ("sort", "lastModified"),
            ("limit", str(min(query.limit, PAGE))),
        )

    def _found(self, response: httpx.Response) -> ModelPage:
        try:
            models = _read_models(json.loads(response.content), self._hub, self._tag)
        except (ValueError, RecursionError) as error:
            raise UpstreamError(f"the hub {self._hub} gave an invalid response about models") from error
        return ModelPage(models, _cursor(response))


async def ask(http: HttpClient, hub: str, path: str, query: Sequence[tuple[str, str]] = ()) -> httpx.Response:
    """The hub's response of at most RESPONSE_BYTES; raises Unavailable while the hub is away or too busy."""
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
    """The cursor of the next page; the rest of the address that the hub gives is not trusted."""
    try:
        query = urlsplit(response.links.get("next", {}).get("url", "")).query
    except ValueError:
        return None
    cursor = next(iter(parse_qs(query).get("cursor", [])), None)
    return cursor if cursor and len(cursor) <= CURSOR_LENGTH else None


# -- sanitised for display: the hub's users write it ---------------------------------------------------------


def _read_models(items: object, hub: str, platform_tag: str) -> tuple[HubModel, ...]:
    """The public models with the tag among those of a hub's list. Raises ValueError for what is no list."""
    if not isinstance(items, list):
        raise ValueError("no list")
    found = (_model(item, hub, platform_tag) for item in items if isinstance(item, dict))
    return tuple(model for model in found if model is not None)


def _task_prefix(platform_tag: str) -> str:
    """The prefix of the tags that name the benchmark tasks of a model."""
    return f"{platform_tag}-task:"


def _model(item: dict[str, Any], hub: str, platform_tag: str) -> HubModel | None:
    repo, tags = item.get("id"), _tags(item.get("tags"))
    # What the hub should not have listed is not shown either.
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
    """Text in one line, without invisible characters."""
    if not isinstance(value, str):
        return None
    # No more than could end up in the line is looked at: a card may be megabytes.
    shown = (" " if c.isspace() else c for c in value[: 4 * longest] if c.isspace() or _is_shown(c))
    line = " ".join("".join(shown).split())
    return f"{line[: longest - 1]}…" if len(line) > longest else line or None


def _is_shown(character: str) -> bool:
    # Control characters, such that turn the direction of text, halves of characters, private ones.
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


class RepoCards:
    """The public repositories of a hub with a tag. Equal calls at the same time cause one request."""

    def __init__(self, hub: str, tag: str) -> None:
        self._hub = hub
        self._tag = tag
        self._http = HttpClient(TIMEOUT_SECONDS, CONNECTIONS)
        self._cards: SharedCalls[tuple[str, str], RepoCard] = SharedCalls(
            TTLCache(_KEPT_CARDS, _CARD_SECONDS), name="cards"
        )
        self._limits = CallerLimits("cards", 60, 60, 300)

    async def read(self, kind: str, repo: str, address: str) -> RepoCard:
        """The card of a repository; ``address`` is the caller's.

        Raises NotFound, TooManyRequests, Unavailable while the hub is away, and UpstreamError for nonsense.
        """
        if kind not in KINDS or not _REPO_NAME.fullmatch(repo) or ".." in repo:
            raise NotFound(f"there is no repository {repo[:200]!r}")
        if (kind, repo) not in self._cards:
            self._limits.take(address)
        return await self._cards.run((kind, repo), lambda: self._read(kind, repo))

    async def close(self) -> None:
        """Give back connections. Idempotent."""
        await self._cards.close()
        await self._http.close()

    async def _read(self, kind: str, repo: str) -> RepoCard:
        found = await ask(self._http, self._hub, f"/api/{kind}/{repo}")
        try:
            about: dict[str, Any] = json.loads(found.content) if found.status_code == 200 else {}
            hidden = about.get("private") or about.get("gated") or self._tag not in about.get("tags", ())
            if hidden:
                raise NotFound(f"there is no public repository {repo} with the tag {self._tag!r}")
            commit = str(about["sha"])
            if not _COMMIT.fullmatch(commit):
                raise ValueError(commit)
            files = [str(file["rfilename"])[:500] for file in about.get("siblings") or ()]
            data = about.get("cardData")
            licence = data.get("license") if isinstance(data, dict) else None
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise UpstreamError(f"the hub gave an invalid response about {repo}") from error
        folder = "" if kind == "models" else f"/{kind}"
        card = await ask(self._http, self._hub, f"{folder}/{repo}/resolve/{commit}/README.md")
        text = card.content.decode("utf-8", errors="replace") if card.status_code == 200 else ""
        return RepoCard(
            repo=repo,
            revision=commit,
            url=f"{self._hub}{folder}/{repo}",
            text=text[:CARD_LENGTH],
            license=licence[:100] if isinstance(licence, str) else None,
            files=tuple(files[:CARD_FILES]),
            more_files=max(len(files) - CARD_FILES, 0),
        )
