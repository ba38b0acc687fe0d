"""``/leaderboard/submissions/<id>``: what a submission's scores rest on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quart import Response, request

from collidium.client import Place, Submission, TaskCard
from collidium.client.calls import Links
from collidium.errors import CollidiumError, NotFound
from collidium_plugins.webapps.context import Route, backend, backend_as_user, may, origin, web
from collidium_plugins.webapps.leaderboard import address_of_place, drawings
from collidium_plugins.webapps.rendering import SHOWN_ON_FORMS, refused, render, retry_after, see_other

_LINKS: Final = ("model_repo", "code_url", "paper_url")
#: Places of its account among which a submission's own is looked for.
_LOOKED_AT: Final = 1000


async def set_links(submission_id: str) -> Response:
    """``POST /leaderboard/submissions/<submission_id>``: its links; an empty field removes one"""
    form = await request.form
    typed = {name: form[name].strip() for name in _LINKS if name in form}
    links = Links(**{name: link or None for name, link in typed.items()})  # type: ignore[typeddict-item]  # by these names
    try:
        await backend_as_user().set_links(submission_id, **links)
    except SHOWN_ON_FORMS as refusal:
        return refused(await show(submission_id, typed, refusal), refusal)
    return see_other(f"/leaderboard/submissions/{submission_id}")


async def show(
    submission_id: str, typed: Mapping[str, str] | None = None, refusal: CollidiumError | None = None
) -> Response:
    """``GET /leaderboard/submissions/<submission_id>``; with links as ``typed``, if they were refused."""
    submission = await backend().submission(submission_id)
    card = await _card(submission)
    compared = request.args.get("with", "").strip()
    other = await _other(submission, compared) if compared else None
    return await render(
        "submission.html",
        drawings=drawings.curves(submission, other),
        compared=compared[:32],
        other=other,
        may_link=may("link"),
        submission=submission,
        card=card,
        place=await _place(submission),
        address_of_place=address_of_place,
        commands=_commands(submission),
        links={name: getattr(submission, name) or "" for name in _LINKS} | dict(typed or {}),
        refusal=refusal,
        retry_after=retry_after(refusal),
        address=f"{web().api_base or origin()}/v1/submissions/{submission.submission_id}",
    )


async def _other(submission: Submission, submission_id: str) -> Submission | None:
    """Another submission to the same task; None where there is none of that id."""
    try:
        other = await backend().submission(submission_id)
    except NotFound:
        return None
    return other if other.task == submission.task else None


async def _card(submission: Submission) -> TaskCard | None:
    """The card of its task; None where that is not listed any more."""
    try:
        return await backend().task(submission.task)
    except NotFound:
        return None


async def _place(submission: Submission) -> Place | None:
    """Its place on the leaderboard of today, if it has one near enough to its account's best."""
    places = await backend().leaderboard(
        submission.task, limit=_LOOKED_AT, user=submission.hub_username, every=True
    )
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


ROUTES: Final[list[Route]] = [
    ("GET", "/submissions/<submission_id>", show),
    ("POST", "/submissions/<submission_id>", set_links),
]
