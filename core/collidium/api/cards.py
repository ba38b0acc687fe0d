"""Render repository cards, which are untrusted Markdown, without their HTML, images and scripts."""

from __future__ import annotations

import asyncio
import re
from typing import Final
from urllib.parse import urljoin

from markupsafe import Markup

#: YAML metadata of the hub.
_FRONT_MATTER: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
#: Heading levels are shifted below those of the page.
_DEEPER: Final = 2


async def rendered(text: str, base: str) -> Markup:
    """Render a card as HTML; relative links are resolved against ``base``."""
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
