"""``/leaderboard/<task>/submit`` and ``/leaderboard/mine``: the viewer's submissions and models."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlencode

from quart import Response, current_app, request

from collidium.api import browsers
from collidium.api.bodies import ReceivedFile, receive_to_file
from collidium.client import Challenge, Checked, Submission, TaskCard
from collidium.errors import CollidiumError, InvalidInput, Unavailable
from collidium.runtime.limits import InFlight
from collidium_plugins.webapps import context
from collidium_plugins.webapps.context import Route
from collidium_plugins.webapps.leaderboard import (
    address_of_place,
    board_of,
    places_of,
    rank_of,
    viewers_quota,
)
from collidium_plugins.webapps.rendering import (
    SHOWN_ON_FORMS,
    part,
    refused,
    render,
    retry_after,
    see_other,
    with_query,
)
from collidium_plugins.webapps.sign_in import forms

#: Submissions per page.
PAGE: Final = 25

#: Refresh interval of the page of models while one is in progress.
REFRESH_SECONDS: Final = 5

_IN_FLIGHT: Final = "collidium.webapps.uploads"


async def show_mine() -> Response:
    """``GET /leaderboard/mine?task=&cursor=``"""
    session = context.signed_in()
    task, cursor = request.args.get("task") or None, request.args.get("cursor") or None
    page, cards = await asyncio.gather(
        context.backend_as_user().submissions(task=task, limit=PAGE, cursor=cursor),
        context.backend().tasks(),
    )
    listed = {card.name: card for card in cards}
    with_teams = {each.name for each in await context.backend().challenges() if each.team_size > 1}
    of_page = {submission.challenge for submission in page}
    places = await places_of(session.hub_username, of_page | with_teams)
    return await render(
        "my-submissions.html",
        submissions=page,
        cards=listed,
        ranks={place.submission_id: place.rank for _, place in places if not place.baseline},
        is_baseline=any(place.baseline for _, place in places),
        of_teams=[found for found in places if found[1].team and task in {None, found[0]}],
        task=task,
        first=cursor and with_query("/leaderboard/mine", task=task),
        next=page.next_cursor and with_query("/leaderboard/mine", task=task, cursor=page.next_cursor),
    )


@dataclass(frozen=True, slots=True)
class Scored:
    """A submission of the viewer and its rank, if any; ``again`` if the same file was sent before."""

    submission: Submission
    rank: int | None
    again: bool


async def show_form(task: str) -> Response:
    """``GET /leaderboard/<task>/submit?model_repo=``; with ``receipt`` (and ``again``) after a submission"""
    challenge, card = await board_of(task)
    submission_id = request.args.get("receipt")
    if submission_id is None:
        return await _page(challenge, card, model_repo=request.args.get("model_repo", ""))
    scored = await _scored(submission_id)
    if scored is None or scored.submission.challenge != card.name:
        return see_other(f"/leaderboard/submissions/{submission_id}")
    return await _page(challenge, card, scored=scored)


@forms.streams_form
async def send(task: str) -> Response:
    """``POST /leaderboard/<task>/submit``: a form with the file, ``model_repo`` and the ``action``

    For browsers without scripts and standalone pages; other scripts send the file to ``/v1``.
    """
    # First, so that a banned account or an invalid token is rejected before the upload.
    sender = (await context.backend_as_user().me()).hub_username
    challenge, card = await board_of(task)
    if card.largest_file_bytes is None:
        raise Unavailable("the task has no truth yet, so it accepts no predictions")
    action = model_repo = ""
    try:
        settings = context.web().settings
        # The same limit as in the backend, which gets the file only after it is on the disk.
        with _in_flight().one_more(sender, settings.evaluations_in_flight):
            async with receive_to_file(request, settings.uploads, card.largest_file_bytes) as file:
                action = file.fields.get("action", "")
                model_repo = file.fields.get("model_repo", "").strip()
                return await _forward(challenge, card, file)
    except SHOWN_ON_FORMS as refusal:
        page = await _page(challenge, card, refusal=refusal, action=action, model_repo=model_repo[:200])
        return refused(page, refusal)


def _in_flight() -> InFlight:
    kept: InFlight = current_app.extensions.setdefault(_IN_FLIGHT, InFlight())
    return kept


async def _forward(challenge: Challenge, card: TaskCard, file: ReceivedFile) -> Response:
    browsers.require_secret(context.signed_in().key, file.fields.get(forms.FIELD, ""))
    if not file.size_bytes:
        raise InvalidInput("no file was chosen")
    model_repo = file.fields.get("model_repo", "").strip()
    if file.fields.get("action") == "check":
        checked = await context.backend_as_user().check(card.name, file.path)
        return await _page(challenge, card, checked=checked, model_repo=model_repo)
    receipt = await context.backend_as_user().submit(card.name, file.path, model_repo or None)
    again = {"again": "1"} if receipt.deduplicated else {}
    query = urlencode({"receipt": receipt.submission_id, **again})
    return see_other(f"/leaderboard/{card.name}/submit?{query}")


@forms.streams_form
async def send_model(task: str) -> Response:
    """``POST /leaderboard/<task>/submit-model``: a form with the files of a model"""
    sender = (await context.backend_as_user().me()).hub_username
    challenge, card = await board_of(task)
    if card.largest_model_bytes is None:
        raise Unavailable("the server runs no models of this task")
    settings = context.web().settings
    received = receive_to_file(
        request, settings.uploads, card.largest_model_bytes, part="model", texts=("manifest",)
    )
    try:
        with _in_flight().one_more(sender, settings.evaluations_in_flight), TemporaryDirectory() as directory:
            async with received as file:
                browsers.require_secret(context.signed_in().key, file.fields.get(forms.FIELD, ""))
                manifest = Path(directory, "manifest.toml")
                await asyncio.to_thread(manifest.write_text, file.fields.get("manifest", ""), "utf-8")
                sent = await context.backend_as_user().submit_model(card.name, file.path, manifest)
    except SHOWN_ON_FORMS as refusal:
        return refused(await _page(challenge, card, refusal=refusal), refusal)
    return see_other(f"/leaderboard/mine/models/{sent.evaluation_id}")


async def show_models() -> Response:
    """``GET /leaderboard/mine/models?cursor=``"""
    context.signed_in()
    cursor = request.args.get("cursor") or None
    page = await context.backend_as_user().evaluations(limit=PAGE, cursor=cursor)
    response = await render(
        "my-models.html",
        evaluations=page,
        first=cursor and "/leaderboard/mine/models",
        next=page.next_cursor and with_query("/leaderboard/mine/models", cursor=page.next_cursor),
    )
    if not all(one.has_ended for one in page):
        response.headers["Refresh"] = str(REFRESH_SECONDS)
    return response


async def show_model(evaluation_id: str) -> Response:
    """``GET /leaderboard/mine/models/<evaluation_id>``"""
    context.signed_in()
    found = await context.backend_as_user().evaluation(evaluation_id)
    return await render("evaluation.html", model=found, refresh_seconds=REFRESH_SECONDS)


async def live_model(evaluation_id: str) -> Response:
    """``GET /leaderboard/mine/models/<evaluation_id>/live``: the part of its page that is polled"""
    found = await context.backend_as_user().evaluation(evaluation_id)
    return await part(await render("evaluation-live.html", model=found))


async def cancel_model(evaluation_id: str) -> Response:
    """``POST /leaderboard/mine/models/<evaluation_id>/cancel``"""
    context.signed_in()
    await context.backend_as_user().cancel_evaluation(evaluation_id)
    return see_other(f"/leaderboard/mine/models/{evaluation_id}")


async def _scored(submission_id: str) -> Scored | None:
    """The submission, if it belongs to the viewer or their team."""
    submission = await context.backend().submission(submission_id)
    viewer = context.viewer()
    if viewer is None:
        return None
    if viewer.hub_username != submission.hub_username:
        team = (await context.backend_as_user().team(submission.challenge)).team
        if team is None or team.name != submission.team:
            return None
    return Scored(submission, await rank_of(submission), "again" in request.args)


async def _page(
    challenge: Challenge,
    card: TaskCard,
    *,
    checked: Checked | None = None,
    scored: Scored | None = None,
    refusal: CollidiumError | None = None,
    action: str = "",
    model_repo: str = "",
) -> Response:
    return await render(
        "submit.html",
        challenge=challenge,
        card=card,
        checked=checked,
        scored=scored,
        address_of_place=address_of_place,
        refusal=refusal,
        action=action,
        model_repo=model_repo,
        quota=await viewers_quota(card),
        retry_after=retry_after(refusal),
    )


ROUTES: Final[list[Route]] = [
    ("GET", "/mine", show_mine),
    ("GET", "/<task>/submit", show_form),
    ("POST", "/<task>/submit", send),
    ("POST", "/<task>/submit-model", send_model),
    ("GET", "/mine/models", show_models),
    ("GET", "/mine/models/<evaluation_id>", show_model),
    ("GET", "/mine/models/<evaluation_id>/live", live_model),
    ("POST", "/mine/models/<evaluation_id>/cancel", cancel_model),
]
