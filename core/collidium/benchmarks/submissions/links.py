"""Links of a submission: its model on the hub and the state of that claim, its code, its paper."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from tortoise.expressions import Q

from collidium import accounts
from collidium.benchmarks import members, teams
from collidium.benchmarks.models import Challenge, Submission, Upload
from collidium.benchmarks.submissions import evaluations, model_files, reading, scorings
from collidium.contracts.identity import USERNAME
from collidium.database import transactional
from collidium.errors import InvalidInput, TooManyRequests
from collidium.outbox import canonical_url

if TYPE_CHECKING:
    from collidium.accounts import AccountView
    from collidium.accounts.identities import Identities
    from collidium.contracts.identity import Identity

logger = logging.getLogger(__name__)

#: ``verified``: the submitter, or an organisation of theirs, owns the repository. ``unverified``: it is
#: another's, or the hub could not be asked. ``missing``: the submitter's token sees no such repository.
Claim = Literal["verified", "unverified", "missing"]
CheckClaim = Callable[[str], Awaitable[Claim | None]]

#: Characters of the URL of code or paper, in the form in which it is kept.
LONGEST_LINK: Final = 500
#: Repositories are named as accounts are.
_MODEL_REPO: Final = re.compile(f"{USERNAME.pattern}/{USERNAME.pattern}")


async def check_claim(
    identities: Identities, identity: Identity, token: str, model_repo: str
) -> Claim | None:
    """Check with the submitter's token what they may claim of a repository; None: the hub did not answer.

    Raises TooManyRequests for a submitter who asks too often.
    """
    try:
        visible = await identities.sees_model(identity, token, model_repo)
    except TooManyRequests:
        raise
    except Exception as error:
        # A provider may be third-party, and its message may hold the token.
        logger.info("the claim of %s was not checked: %s", model_repo, type(error).__name__)
        return None
    if not visible:
        return "missing"
    owner = model_repo.partition("/")[0].casefold()
    own = {name.casefold() for name in (identity.username, *identity.organisations)}
    return "verified" if owner in own else "unverified"


def validated(links: Mapping[str, str | None]) -> dict[str, str | None]:
    """The links (``model_repo``, ``code_url``, ``paper_url``) in the form in which they are kept.

    Raises InvalidInput with all that cannot be linked.
    """
    kept: dict[str, str | None] = {}
    errors: list[Mapping[str, Any]] = []
    for name, link in links.items():
        try:
            kept[name] = link if link is None else _validated(name, link)
        except InvalidInput as error:
            errors += error.errors
    if errors:
        detail = "; ".join(f"{error['field']}: {error['detail']}" for error in errors)
        raise InvalidInput(detail, errors=errors)
    return kept


async def checked(
    account: AccountView,
    submission_id: str,
    changes: Mapping[str, str | None],
    check_claim: CheckClaim,
) -> dict[str, str | None]:
    """Return what :func:`set_once` writes to set or, by None, remove links of one's own submission.

    A model that is named is checked, also where it is the one that is linked already. Raises InvalidInput
    with every problem found, NotFound, and Forbidden for another account's submission.
    """
    kept = validated(changes)
    row = await reading.own_row(account, submission_id)
    if "model_repo" in kept:
        repo = kept["model_repo"]
        claim = None if repo is None else await check_claim(repo)
        if repo is None or claim is not None or repo != row.model_repo:
            # A claim that was verified stays so while the hub is away.
            kept["model_claim"] = claim if repo is None else claim or "unverified"
    return kept


@transactional
async def set_once(account: AccountView, submission_id: str, changes: Mapping[str, str | None]) -> None:
    """Set links that were :func:`checked`; those that are not named stay."""
    row = await reading.row_of(submission_id)
    challenge = await Challenge.select_for_update().get(name=row.challenge)
    await accounts.require_not_banned(account.id)
    await link(challenge, await Submission.select_for_update().get(id=row.id), changes)


async def link(challenge: Challenge, submission: Submission, changes: Mapping[str, str | None]) -> None:
    """Write links within a transaction that has locked both rows."""
    model = submission.model_repo, submission.model_claim
    submission.update_from_dict(dict(changes))
    await submission.save(update_fields=list(changes))
    if model != (submission.model_repo, submission.model_claim):  # what leaderboards show
        challenge.revision += 1
        await challenge.save(update_fields=["revision"])


async def submitted_by(account_id: int) -> tuple[int, list[str]]:
    """How many submissions an account has, and the keys of files that it alone has sent."""
    own = set(await Submission.filter(account_id=account_id).values_list("sha256", flat=True))
    others = Submission.filter(sha256__in=list(own)).exclude(account_id=account_id)
    alone = own - set(await others.values_list("sha256", flat=True))
    count = await Submission.filter(account_id=account_id).count()
    models, predicted = await model_files.submitted_by(account_id)
    predictions = [scorings.storage_key(sha256) for sha256 in sorted({*map(str, alone), *predicted})]
    return count, [*predictions, *map(model_files.model_key, models)]


@transactional
async def forget(account_id: int, name: str, becomes: str) -> None:
    """Keep the scores of an account under its neutral name, without links, and others' without its models.

    It leaves its teams, and is no member of challenges any more.
    """
    rows = Submission.filter(account_id=account_id)
    linked = Submission.filter(Q(account_id=account_id) | Q(model_repo__istartswith=f"{name}/"))
    names = set(await linked.values_list("challenge", flat=True)) | await teams.challenges_of(account_id)
    for challenge in await Challenge.filter(name__in=list(names)).order_by("name").select_for_update():
        challenge.revision += 1
        await challenge.save(update_fields=["revision"])
    await teams.forget(account_id, name)
    await members.forget(name)
    await linked.update(model_repo=None, model_claim=None)
    await rows.update(hub_username=becomes, code_url=None, paper_url=None, from_hub=None)
    await Upload.filter(account_id=account_id).delete()
    await evaluations.forget(account_id, becomes)


def _validated(name: str, link: str) -> str:
    problem = ""
    if name == "model_repo":
        if not _MODEL_REPO.fullmatch(link):
            problem = f"it is written NAMESPACE/NAME, not {link[:200]!r}"
    else:
        link = canonical_url(link, field=name)
        if len(link) > LONGEST_LINK:
            problem = f"it is longer than {LONGEST_LINK} characters"
    if problem:
        raise InvalidInput(problem, errors=[{"field": name, "detail": problem}])
    return link
