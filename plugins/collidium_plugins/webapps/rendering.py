"""Pages from templates, which escape whatever they are given."""

from __future__ import annotations

from typing import Any, Final

from markupsafe import Markup
from quart import Response, render_template, request

from collidium import __version__
from collidium_plugins.webapps import assets, context
from collidium_plugins.webapps.quantities import written
from collidium_plugins.webapps.sign_in import returning

#: The apps in the order of the navigation: address and name.
NAVIGATION: Final = (
    ("/events", "Events"),
    ("/simulate", "Simulate"),
    ("/leaderboard", "Leaderboard"),
    ("/models", "Models"),
)


async def render(template: str, **values: Any) -> Response:
    """A page from a template of ``templates/webapps``, with what every page needs."""
    viewer = context.viewer()
    csrf = viewer.csrf if viewer else ""
    text = await render_template(
        f"webapps/{template}",
        viewer=viewer,
        csrf_field=lambda: _csrf_field(csrf),
        asset=assets.address,
        api_base=context.web().api_base,
        hub=context.hub_url(),
        navigation=NAVIGATION,
        path=request.path,
        here=returning.this_page(),
        version=__version__,
        written=written,
        **values,
    )
    return Response(text, content_type="text/html; charset=utf-8")


def _csrf_field(secret: str) -> Markup:
    return Markup('<input type="hidden" name="csrf_token" value="{}">').format(secret)
