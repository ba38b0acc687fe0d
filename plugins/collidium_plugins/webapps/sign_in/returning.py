"""Where somebody goes on after a sign-in: a page of ours, and nothing else."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlencode, urlsplit

from quart import request

from collidium_plugins.webapps.sign_in.forms import FIELD, is_form

FRONT: Final = "/"
LONGEST: Final = 2000

#: A path from the root. To browsers a backslash is a slash, two slashes begin a host, and breaks are nothing.
_LOCAL: Final = re.compile(r"/(?!/)[!-\[\]-~]*")


def local(address: str) -> str:
    """The address if it is a page of ours, else the front page."""
    if len(address) > LONGEST or not _LOCAL.fullmatch(address) or address.startswith("/web/"):
        return FRONT
    return address


def this_page() -> str:
    """The address that is asked for, with its query."""
    return local(request.full_path.rstrip("?"))


async def here() -> str:
    """The page that somebody who has to sign in wants back, with what they typed into its form."""
    if request.method in {"GET", "HEAD"}:
        return this_page()
    came_from = urlsplit(request.headers.get("Referer", ""))
    page = came_from.path if came_from.netloc == request.host else FRONT
    typed = [item for item in (await request.form).items(multi=True) if item[0] != FIELD] if is_form() else []
    with_typed = local(f"{page}?{urlencode(typed)}" if typed else page)
    return local(page) if with_typed == FRONT else with_typed
