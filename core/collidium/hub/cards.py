"""Cards of repositories on the hub: read, cached for a short time, and rendered.

They are untrusted Markdown; HTML, images and scripts in them are not rendered.
"""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any, Final
from urllib.parse import urljoin

from cachetools import TTLCache
from markupsafe import Markup

from collidium.errors import NotFound, UpstreamError
from collidium.hub.models import CONNECTIONS, TIMEOUT_SECONDS, ask
from collidium.records import RepoCard
from collidium.runtime.http_client import HttpClient
from collidium.runtime.limits import CallerLimits
from collidium.runtime.shared_calls import SharedCalls

#: The kinds of repositories in the hub's paths.
KINDS: Final = ("datasets", "models")
#: Maximum length of a card, and number of files that are listed.
CARD_LENGTH: Final = 64 * 1024
CARD_FILES: Final = 200

_CARD_SECONDS: Final = 30.0
_KEPT_CARDS: Final = 200
_REPO_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")

#: YAML metadata of the hub.
_FRONT_MATTER: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
#: Heading levels are shifted below those of the page.
_DEEPER: Final = 2


class RepoCards:
    """Cards of a hub's public repositories with a tag. Concurrent equal calls share one request."""

    def __init__(self, hub: str, tag: str) -> None:
        self._hub = hub
        self._tag = tag
        self._http = HttpClient(TIMEOUT_SECONDS, CONNECTIONS)
        self._cards: SharedCalls[tuple[str, str], RepoCard] = SharedCalls(
            TTLCache(_KEPT_CARDS, _CARD_SECONDS), name="cards"
        )
        self._limits = CallerLimits("cards", 60, 60, 300)

    async def read(self, kind: str, repo: str, address: str) -> RepoCard:
        """Return the card of a repository; ``address`` is the caller's, for the rate limit.

        Raises NotFound, TooManyRequests, Unavailable if the hub does not respond, and UpstreamError for an
        invalid response.
        """
        if kind not in KINDS or not _REPO_NAME.fullmatch(repo) or ".." in repo:
            raise NotFound(f"there is no repository {repo[:200]!r}")
        if (kind, repo) not in self._cards:
            self._limits.take(address)
        return await self._cards.run((kind, repo), lambda: self._read(kind, repo))

    async def close(self) -> None:
        """Close the connections. Idempotent."""
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
            raise UpstreamError(f"the hub sent an invalid response for {repo}") from error
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


async def rendered(text: str, base: str) -> Markup:
    """Render a card as HTML for a page; relative links are resolved against ``base``."""
    # Importing the parser is slow.
    return await asyncio.to_thread(_rendered, text, base) if text else Markup()


def _rendered(text: str, base: str) -> Markup:
    from markdown_it import MarkdownIt

    # This preset escapes HTML and rejects URLs such as javascript:.
    markdown = MarkdownIt("js-default", {"linkify": False}).disable(["image", "linkify"])
    tokens = markdown.parse(_FRONT_MATTER.sub("", text.replace("\r\n", "\n"), count=1))
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(int(token.tag[1]) + _DEEPER, 6)}"
        for inner in token.children or ():
            if inner.type == "link_open":
                inner.attrSet("href", urljoin(f"{base}/", str(inner.attrGet("href") or "")))
                inner.attrSet("rel", "nofollow noopener")
    return Markup(markdown.renderer.render(tokens, markdown.options, {}))  # noqa: S704 -- escaped above
