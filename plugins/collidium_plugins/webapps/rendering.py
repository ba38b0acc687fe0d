"""Rendering of pages from templates, forms with errors, and redirects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from jinja2.environment import TemplateModule
from markupsafe import Markup
from quart import Response, current_app, render_template, request

from collidium import __version__
from collidium.client import NO_EVENTS, order_text
from collidium.errors import (
    CollidiumError,
    Conflict,
    Forbidden,
    InvalidInput,
    PaymentRequired,
    TooManyRequests,
    Unavailable,
)
from collidium.presentation import consequences, places
from collidium.presentation.challenge_settings import heading_rows
from collidium.presentation.quantities import (
    amount_text,
    credits_text,
    duration_text,
    size_text,
    value_text,
    written,
)
from collidium.presentation.requests import state_text
from collidium.presentation.scores import origin_of, rank_text, score_text, team_word
from collidium_plugins.webapps import context
from collidium_plugins.webapps.assets import GUIDE, asset_address, guide_directory
from collidium_plugins.webapps.sign_in import forms

#: Errors of the backend that are shown on the page of the form; others have an error page.
SHOWN_ON_FORMS: Final = (Conflict, Forbidden, InvalidInput, PaymentRequired, TooManyRequests, Unavailable)
#: Path and name of each entry.
NAVIGATION: Final = (
    ("/events", "Events"),
    ("/datasets", "Datasets"),
    ("/simulate", "Simulate"),
    ("/leaderboard", "Leaderboards"),
    ("/models", "Models"),
    ("/docs", "API"),
)
#: Formats of numbers and states, for all templates and their macros.
FILTERS: Final[Mapping[str, Callable[..., str]]] = {
    "amount": amount_text,
    "credits": credits_text,
    "duration": duration_text,
    "request_state": state_text,
    "shown": value_text,
    "size": size_text,
}

_MINUTE: Final = 60
_HOUR: Final = 60 * _MINUTE


async def render(template: str, **values: Any) -> Response:
    """Render a template of ``templates/webapps``, with the variables that every page uses."""
    viewer = context.viewer()
    csrf = viewer.csrf if viewer else ""
    text = await render_template(
        f"webapps/{template}",
        viewer=viewer,
        csrf_field=lambda: _csrf_field(csrf),
        api_base=context.web().api_base,
        single_sign_on=context.web().single_sign_on,
        navigation=NAVIGATION,
        path=request.path,
        here=forms.this_page(),
        version=__version__,
        foot=context.web().settings,
        guide=GUIDE if guide_directory() else "",
        **_shared(),
        **values,
    )
    return Response(text, content_type="text/html; charset=utf-8")


async def render_parts(template: str, **values: Any) -> TemplateModule:
    """Render a template whose variables and macros are parts of a page, without what is a user's."""
    found = current_app.jinja_env.get_template(f"webapps/{template}")
    return await found.make_module_async({**_shared(), **values})


def _shared() -> dict[str, Any]:
    """Variables that do not depend on the user."""
    return {
        "asset": asset_address,
        "hub": context.hub_url(),
        "team_word": team_word,
        "shell": context.shell,
        "no_events": NO_EVENTS,
        "heading_rows": heading_rows,
        "order_text": order_text,
        "written": written,
        "columns_of_board": places.on_page,
        "columns_of_print": places.on_print,
        "about_baselines": places.ABOUT_BASELINES,
        "consequences": consequences,
        "score_text": score_text,
        "rank_text": rank_text,
        "origin_of": origin_of,
    }


async def part(response: Response) -> Response:
    """Make a fragment that scripts poll conditional on its ETag."""
    response.headers["Cache-Control"] = "private, no-store"
    await response.add_etag()
    return await response.make_conditional(request)


def _csrf_field(secret: str) -> Markup:
    return Markup('<input type="hidden" name="csrf_token" value="{}">').format(secret)


def see_other(address: str) -> Response:
    """Redirect to a page by 303, so that browsers use GET (RFC 9110, section 15.4.4)."""
    return Response("", status=303, headers={"Location": address, "Cache-Control": "no-store"})


def refused(page: Response, error: CollidiumError) -> Response:
    """Give the page of a form the status and Retry-After of the backend's error."""
    page.status_code = error.status
    if "Retry-After" in error.headers:
        page.headers["Retry-After"] = error.headers["Retry-After"]
    return page


def retry_after(error: CollidiumError | None) -> str:
    """Format the error's Retry-After; empty without one."""
    text = error.headers.get("Retry-After", "") if error else ""
    if not (text.isascii() and text.isdecimal()):
        return ""
    seconds = int(text[:9])
    if seconds < 2 * _MINUTE:
        return f"{seconds} seconds"
    return f"{-(-seconds // _MINUTE)} minutes" if seconds < 2 * _HOUR else f"{-(-seconds // _HOUR)} hours"


def with_query(path: str, **query: object) -> str:
    """Add a query to a path; empty and None values are left out."""
    text = urlencode({name: value for name, value in query.items() if value not in ("", None)})
    return f"{path}?{text}" if text else path
