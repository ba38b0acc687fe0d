"""``/leaderboard/submissions/<id>``: what a submission's scores rest on."""

from __future__ import annotations

from typing import Final

from quart import Response

from collidium.client import Place, Submission, TaskCard
from collidium.errors import NotFound
from collidium_plugins.webapps.context import backend, origin, web
from collidium_plugins.webapps.leaderboard.board import address_of_place
from collidium_plugins.webapps.rendering import render

#: Places of its account among which a submission's own is looked for.
_LOOKED_AT: Final = 1000


async def show(submission_id: str) -> Response:
    """``GET /leaderboard/submissions/<submission_id>``"""
    submission = await backend().submission(submission_id)
    card = await _card(submission)
    return await render(
        "submission.html",
        submission=submission,
        card=card,
        place=await _place(submission),
        address_of_place=address_of_place,
        commands=_commands(submission),
        address=f"{web().api_base or origin()}/v1/submissions/{submission.submission_id}",
    )


async def _card(submission: Submission) -> TaskCard | None:
    """The card of its task; None where that is not listed any more."""
    try:
        return await backend().task(submission.task)
    except NotFound:
        return None


async def _place(submission: Submission) -> Place | None:
    """Its place on the leaderboard of today, if it has one near enough to its account's best."""
    places = await backend().leaderboard(submission.task, limit=_LOOKED_AT, user=submission.hub_username)
    return next((place for place in places if place.submission_id == submission.submission_id), None)


def _commands(submission: Submission) -> str:
    """How to see that a file is this one, and what it scores."""
    model = f" --model-repo {submission.model_repo}" if submission.model_repo else ""
    return "\n".join(
        (
            f"export PLATFORM_BACKEND={web().api_base or origin()}",
            f"collidium tasks {submission.task}",
            f"echo '{submission.sha256}  predictions.parquet' | sha256sum --check",
            f"collidium check {submission.task} predictions.parquet",
            f"collidium submit {submission.task} predictions.parquet{model}",
        )
    )
