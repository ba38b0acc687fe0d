"""Links of a submission: its model on the hub and the state of that claim, its code, its paper."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal

from collidium.contracts.identity import USERNAME
from collidium.errors import InvalidInput, TooManyRequests
from collidium.outbox import canonical_url

if TYPE_CHECKING:
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
