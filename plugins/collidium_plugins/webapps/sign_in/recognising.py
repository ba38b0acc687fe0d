"""Before anything of a page is done: whose browser it is, and whether what it sends comes from our forms."""

from __future__ import annotations

from quart import Response, g, request

from collidium_plugins.webapps import context
from collidium_plugins.webapps.sign_in import cookies, forms

_STATIC = "/web/static/"


async def recognise() -> None:
    """Know the session of the request, if there is one. Raises Forbidden for another site's doing."""
    # A page has many of these, which are the same for everybody.
    if request.path.startswith(_STATIC):
        return
    key = cookies.read(cookies.SESSION)
    if not key:
        return
    session = await context.web().sign_in.sessions.find(key)
    if session is None:
        g.web_session_ended = True
        return
    g.web_session = session
    if request.method not in forms.SAFE:
        await forms.refuse_foreign(session)


async def forget_ended(response: Response) -> Response:
    """Have the browser drop the cookie of a session that has ended, unless it was given another one."""
    if g.get("web_session_ended") and g.get("web_session") is None:
        cookies.forget(response, cookies.SESSION)
    return response
