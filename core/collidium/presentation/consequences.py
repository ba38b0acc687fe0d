"""What an action does, as users and operators read it where they confirm it: command, console or page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collidium.presentation.quantities import credits_text

if TYPE_CHECKING:
    from collidium.records import Challenge, Evaluation, RosterEntry, SimulationRequest

FREEZE: Final = (
    "New simulation requests of all accounts are rejected (503) until the platform is unfrozen. "
    "Running requests continue, and submissions to benchmarks are still accepted."
)
UNFREEZE: Final = "New simulation requests are accepted and charged again."
#: To be continued by how to cancel its requests.
BAN: Final = (
    "All calls of this account are rejected (403) until it is unbanned. Its simulation requests continue"
)
UNBAN: Final = "Calls of this account are accepted again."

WITHDRAW: Final = "It loses its rank permanently, and the day's submission is not given back."
VERIFY: Final = "It then counts as verified, on the leaderboard and for credits. This cannot be undone."
REPRODUCE: Final = "Once, at the price of a model; everybody sees the results, and they never count."
RERUN_MODEL: Final = "It is queued again, at no further cost."

CLOSE: Final = (
    "No more submissions are accepted. Withheld events, if any, count from now on: the leaderboard ranks "
    "by them, credits are paid for the best scores on them, and the challenge cannot be opened again."
)
_ALONE: Final = "its submissions and competes alone; ranks are updated immediately. The team"
REMOVE_FROM_TEAM: Final = f"The account keeps {_ALONE}'s invitations end. A team without members is removed."
DISSOLVE_TEAM: Final = f"Each member keeps {_ALONE} and its invitations end. This cannot be undone."


def cancel_request(request: SimulationRequest, owner: str) -> str:
    """Describe what cancelling a request does; ``owner`` is who is refunded."""
    return (
        "Its job is stopped and makes no dataset. The unused part of the "
        f"{credits_text(request.credits_charged)} is refunded to {owner}."
    )


def cancel_model(run: Evaluation) -> str:
    """Describe what cancelling an evaluation does."""
    text = "It is not scored. Its owner can submit it again; it counts for the quota of the day."
    if not run.price:
        return text
    return f"{text} The price, {credits_text(run.price)}, is refunded if it is not running yet."


def remove_member(challenge: Challenge, entry: RosterEntry) -> str:
    """Describe what removing an account from the members of a challenge does."""
    name, user = challenge.name, entry.hub_username
    stays = f"Its {entry.submissions} submissions stay" if entry.submissions else "It has no submissions"
    team = f", and it stays in the team {entry.team}" if entry.team else ""
    is_open = (
        "" if challenge.access == "members" else f"{name} is currently open, not restricted to members.\n"
    )
    return f"{is_open}{user} can no longer submit as a member. {stays}{team}. All invitations to {name} end."
