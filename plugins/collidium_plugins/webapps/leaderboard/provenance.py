"""``/leaderboard/submissions/<id>``: a submission with its scores, provenance and links."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quart import Response, request

from collidium.client import Challenge, Place, Submission, TaskCard
from collidium.client.calls import Links
from collidium.errors import CollidiumError, NotFound
from collidium_plugins.webapps.context import Route, backend, backend_as_user, may, origin, shell, viewer, web
from collidium_plugins.webapps.leaderboard import PLACES_OF_ONE, address_of_place, board_of, drawings, rank_of
from collidium_plugins.webapps.rendering import SHOWN_ON_FORMS, refused, render, retry_after, see_other
from collidium_plugins.webapps.sign_in import forms

_LINKS: Final = ("model_repo", "code_url", "paper_url")


async def change(submission_id: str) -> Response:
    """``POST /leaderboard/submissions/<submission_id>``

    Sets its links, removing those with an empty field; or performs an ``action``: choose it for the final
    results or not (``choose``, ``drop``), ``withdraw`` it, or run its model again (``reproduce``).
    """
    form = await request.form
    typed = {name: form[name].strip() for name in _LINKS if name in form}
    links = Links(**{name: link or None for name, link in typed.items()})  # type: ignore[typeddict-item]  # by these names
    action = form.get("action")
    try:
        if action == "withdraw":
            await backend_as_user().withdraw(submission_id)
        elif action == "reproduce":
            await backend_as_user().reproduce(submission_id)
        else:
            if action in {"choose", "drop"}:
                links = Links(final=action == "choose")
            await backend_as_user().set_links(submission_id, **links)
    except SHOWN_ON_FORMS as refusal:
        return refused(await show(submission_id, typed, refusal), refusal)
    return see_other(f"/leaderboard/submissions/{submission_id}")


async def show(
    submission_id: str, typed: Mapping[str, str] | None = None, refusal: CollidiumError | None = None
) -> Response:
    """``GET /leaderboard/submissions/<submission_id>``, with ``typed`` links"""
    submission = await backend().submission(submission_id)
    challenge, card = await _board(submission)
    sent = await forms.typed()
    typed = typed or {name: sent[name] for name in _LINKS if name in sent}
    compared = request.args.get("with", "").strip()
    other = await _other(submission, compared) if compared else None
    return await render(
        "submission.html",
        drawings=drawings.curves(submission, other),
        compared=compared[:32],
        other=other,
        differences=(await backend().compare(submission_id, other.submission_id)).differences
        if other
        else {},
        may_link=may("link"),
        submission=submission,
        card=card,
        challenge=challenge,
        may_choose=challenge is not None and await _may_choose(submission, challenge),
        place=await _place(submission),
        rank=await rank_of(submission),
        address_of_place=address_of_place,
        commands=_commands(submission),
        links={name: getattr(submission, name) or "" for name in _LINKS} | dict(typed),
        refusal=refusal,
        retry_after=retry_after(refusal),
        address=f"{web().api_base or origin()}/v1/submissions/{submission.submission_id}",
    )


async def _other(submission: Submission, submission_id: str) -> Submission | None:
    """Another submission to the same task; None if there is no such submission."""
    try:
        other = await backend().submission(submission_id)
    except NotFound:
        return None
    return other if other.task == submission.task else None


async def _board(submission: Submission) -> tuple[Challenge | None, TaskCard | None]:
    """The challenge and its card; None if it is no longer listed."""
    try:
        return await board_of(submission.challenge)
    except NotFound:
        return None, None


async def _may_choose(submission: Submission, challenge: Challenge) -> bool:
    """Whether the viewer may choose the submission for upcoming final results."""
    reader = viewer()
    if reader is None or challenge.results_at or challenge.name == challenge.task or submission.unranked:
        return False
    if reader.hub_username == submission.hub_username or submission.team is None:
        return reader.hub_username == submission.hub_username
    try:
        team = (await backend_as_user().team(challenge.name)).team
    except CollidiumError:  # unknown; the page is shown all the same
        return False
    return team is not None and team.name == submission.team


async def _place(submission: Submission) -> Place | None:
    """The place of the submission, if it is among the best :data:`PLACES_OF_ONE` of its account."""
    places = await backend().leaderboard(
        submission.challenge, limit=PLACES_OF_ONE, user=submission.hub_username, every=True
    )
    return next((place for place in places if place.submission_id == submission.submission_id), None)


def _commands(submission: Submission) -> str:
    """Commands that reproduce the scores of a model or of a file."""
    if submission.model is not None:
        return shell(
            "pip install 'collidium[onnx]'",
            f"collidium bundle {submission.submission_id} --model model.onnx --manifest manifest.toml",
            "collidium model reproduce bundle.zip",
            "# on your events: collidium model reproduce bundle.zip --from DIRECTORY --events 0:1000",
        )
    model = f" --model-repo {submission.model_repo}" if submission.model_repo else ""
    return shell(
        f"collidium tasks {submission.challenge}",
        f"echo '{submission.sha256}  predictions.parquet' | sha256sum --check",
        f"collidium check {submission.challenge} predictions.parquet",
        f"collidium submit {submission.challenge} predictions.parquet{model}",
    )


ROUTES: Final[list[Route]] = [
    ("GET", "/submissions/<submission_id>", show),
    ("POST", "/submissions/<submission_id>", change),
]
