"""``/simulate/requests``: what was ordered and what becomes of it, as it goes on; cancelling."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quart import Response, request

from collidium.client import OutputFile, SimulationRequest
from collidium.errors import CollidiumError, Conflict, Forbidden
from collidium_plugins.webapps import context
from collidium_plugins.webapps.rendering import part, refused, render, see_other, with_query

#: Requests next to the form, and on a page of all.
LATEST: Final = 8
PAGE: Final = 25
STATES: Final = ("queued", "running", "completed", "failed", "cancelled")

_REPO: Final = re.compile(r"https?://[^/]+(?:/[^/]+)*?/datasets/([\w.-]+/[\w.-]+)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Output:
    """The dataset that a request made."""

    repo: str
    #: Its page on the hub; None for what is private on the local hub, whose pages have no sign-in.
    address: str | None
    #: Its first event in the display; None for what is private, which the display does not see.
    first_event: str | None


async def latest() -> Response:
    """``GET /simulate/latest``: the part of the form's page that changes"""
    requests = await context.backend_as_user().requests(limit=LATEST)
    return await part(await render("simulate-latest.html", requests=requests, output_of=output_of))


async def show_all() -> Response:
    """``GET /simulate/requests?state=&cursor=``"""
    state = request.args.get("state") or None
    cursor = request.args.get("cursor") or None
    page = await context.backend_as_user().requests(state=state, limit=PAGE, cursor=cursor)
    return await render(
        "requests.html",
        requests=page,
        output_of=output_of,
        state=state,
        states=STATES,
        first=cursor and with_query("/simulate/requests", state=state),
        next=page.next_cursor and with_query("/simulate/requests", state=state, cursor=page.next_cursor),
    )


async def show(request_id: str) -> Response:
    """``GET /simulate/requests/<request_id>``; ``ordered`` is there for who comes from the form"""
    return await _page(await context.backend_as_user().request(request_id))


async def live(request_id: str) -> Response:
    """``GET /simulate/requests/<request_id>/live``: the part of its page that changes"""
    found = await context.backend_as_user().request(request_id)
    files = await _files(found)
    return await part(await render("request-live.html", request=found, output_of=output_of, files=files))


async def cancel(request_id: str) -> Response:
    """``POST /simulate/requests/<request_id>/cancel``"""
    backend = context.backend_as_user()
    try:
        await backend.cancel(request_id)
    except (Conflict, Forbidden) as refusal:
        return refused(await _page(await backend.request(request_id), refusal), refusal)
    return see_other(f"/simulate/requests/{request_id}")


async def _page(found: SimulationRequest, refusal: CollidiumError | None = None) -> Response:
    ordered = request.args.get("ordered")
    return await render(
        "request.html",
        request=found,
        output_of=output_of,
        files=await _files(found),
        ordered=ordered,
        refusal=refusal,
    )


async def _files(found: SimulationRequest) -> Sequence[OutputFile]:
    """What the server keeps of a completed request that is on no hub."""
    if found.state != "completed" or found.output_hub_repo is not None:
        return ()
    return (await context.backend_as_user().output(found.request_id)).items


def output_of(found: SimulationRequest) -> Output | None:
    """The dataset of a request; None before there is one, and for a mock's, which never is."""
    named = _REPO.fullmatch(found.output_hub_repo or "")
    if named is None or found.output_is_mock:
        return None
    config = f"{found.channel}_pu{found.pileup}"
    return Output(
        named[1],
        _page_of(named[0], named[1], private=found.private),
        None if found.private else with_query("/events", repo=named[1], config=config, event=0),
    )


def _page_of(address: str, repo: str, *, private: bool) -> str | None:
    if context.web().settings.hub_url:
        return address
    return None if private else f"{context.hub_url()}/datasets/{repo}"
