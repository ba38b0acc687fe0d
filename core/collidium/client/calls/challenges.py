"""Calls of operators about challenges: what they are, and what counts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypedDict, Unpack

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, Credential, endpoint, given, keyed, segment
from collidium.records import Challenge, Page, Ranking, Rescoring, RosterEntry, Submission


class ChallengeFields(TypedDict, total=False):
    """What operators set of a challenge; dates have a time zone, rules and announcements are Markdown."""

    title: str
    #: None: open from the beginning.
    opens_at: datetime | None
    #: None: until it is closed.
    closes_at: datetime | None
    #: Per cent of the events that count until it closes, 1 to 99; the rest counts then.
    public_percent: int | None
    #: Of a participant in a UTC day; None: as the platform has it.
    submissions_per_day: int | None
    #: How many of a participant the final results are chosen from.
    final_submissions: int
    #: Whether submissions are scored after closing, without a rank.
    practice: bool
    #: Whether new bests earn credits.
    rewarded: bool
    #: ``open``, or ``members``.
    access: str
    #: An organisation of the hub that is admitted in addition to members.
    organisation: str | None
    #: How many people a team may have; below 2: no teams.
    team_size: int
    #: From when on teams stay as they are; None: from closing on.
    teams_frozen_at: datetime | None
    rules: str
    #: Added to those that there are.
    announcement: str


class ChallengeCalls:
    """Calls of operators about challenges."""

    @endpoint
    def admin_challenge_submissions(
        self, challenge: str, *, user: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Submission]]:
        """List the submissions to a challenge, newest first, also those without a rank.

        Parameters
        ----------
        challenge : str
        user : str, optional
            Only those of an account.
        limit, cursor
            The page.

        Returns
        -------
        Page of Submission
        """
        where, query = (
            f"/admin/challenges/{segment(challenge)}/submissions",
            given(user=user, limit=limit, cursor=cursor),
        )
        return Call("GET", where, listed(Submission), Credential.ADMIN, query=query)

    @endpoint
    def admin_roster(
        self, challenge: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[RosterEntry]]:
        """A page of who takes part in a challenge, by name; also members and teams without submissions."""
        where, query = f"/admin/challenges/{segment(challenge)}/roster", given(limit=limit, cursor=cursor)
        return Call("GET", where, listed(RosterEntry), Credential.ADMIN, query=query)

    @endpoint
    def admin_preview_standing(self, challenge: str, submission_id: str) -> Call[Ranking]:
        """What would change if a submission were disqualified, or reinstated where it is."""
        where = _submission(challenge, submission_id, "standing")
        return Call("GET", where, single(Ranking), Credential.ADMIN)

    @endpoint
    def admin_disqualify(
        self,
        challenge: str,
        submission_id: str,
        reason: str,
        *,
        take_back: bool = False,
        idempotency_key: str | None = None,
    ) -> Call[Ranking]:
        """Remove a submission from its leaderboard.

        Parameters
        ----------
        challenge, submission_id : str
        reason : str
            Everyone sees it.
        take_back : bool
            Also take back the credits that it earned.

        Returns
        -------
        Ranking
        """
        where = _submission(challenge, submission_id, "disqualify")
        body, headers = {"reason": reason, "take_back": take_back}, keyed(idempotency_key)
        return Call("POST", where, single(Ranking), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_reinstate(
        self, challenge: str, submission_id: str, *, idempotency_key: str | None = None
    ) -> Call[Ranking]:
        """Let a disqualified submission count again."""
        where = _submission(challenge, submission_id, "reinstate")
        return Call("POST", where, single(Ranking), Credential.ADMIN, headers=keyed(idempotency_key))

    @endpoint
    def admin_rescore(
        self,
        challenge: str,
        *,
        public_percent: int | None = None,
        apply: bool = False,
        idempotency_key: str | None = None,
    ) -> Call[Rescoring]:
        """Score all submissions to a challenge again, in the background.

        Parameters
        ----------
        challenge : str
        public_percent : int, optional
            Per cent of the events that count from now on, until it closes.
        apply : bool
            Keep the new scores; otherwise only see what would change.

        Returns
        -------
        Rescoring
            :meth:`admin_rescoring` returns its progress.
        """
        where, headers = f"/admin/challenges/{segment(challenge)}/rescoring", keyed(idempotency_key)
        body = given(public_percent=public_percent, apply=apply)
        return Call("POST", where, single(Rescoring), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_rescoring(self, challenge: str) -> Call[Rescoring]:
        """The last rescoring of a challenge: how far it is, or what changes."""
        where = f"/admin/challenges/{segment(challenge)}/rescoring"
        return Call("GET", where, single(Rescoring), Credential.ADMIN)

    @endpoint
    def admin_new_challenge(
        self,
        name: str,
        task: str,
        *,
        truth_version: str | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[ChallengeFields],
    ) -> Call[Challenge]:
        """Make a challenge of a task.

        Parameters
        ----------
        name : str
            Words of a-z and 0-9, joined by hyphens.
        task : str
            A task that is installed.
        truth_version : str, optional
            Of the task; by default that of its own challenge.
        **fields
            As in :class:`ChallengeFields`.

        Returns
        -------
        Challenge

        Raises
        ------
        InvalidInput
            With all problems.
        Conflict
            For a name that is taken, and a task without truth.
        """
        json = _in_json({"name": name, "task": task, **given(truth_version=truth_version), **fields})
        headers = keyed(idempotency_key)
        return Call(
            "POST", "/admin/challenges", single(Challenge), Credential.ADMIN, json=json, headers=headers
        )

    @endpoint
    def admin_edit_challenge(
        self, name: str, *, idempotency_key: str | None = None, **fields: Unpack[ChallengeFields]
    ) -> Call[Challenge]:
        """Change a challenge.

        Parameters
        ----------
        name : str
        **fields
            As in :class:`ChallengeFields`; others stay.

        Returns
        -------
        Challenge
        """
        where, headers = f"/admin/challenges/{segment(name)}", keyed(idempotency_key)
        json = _in_json(fields)
        return Call("PATCH", where, single(Challenge), Credential.ADMIN, json=json, headers=headers)

    @endpoint
    def admin_refresh_hidden(
        self, name: str, truth_version: str, *, idempotency_key: str | None = None
    ) -> Call[Challenge]:
        """Let the events of another imported truth count, and run its models on them."""
        where, headers = f"/admin/challenges/{segment(name)}/refresh-hidden", keyed(idempotency_key)
        json = {"truth_version": truth_version}
        return Call("POST", where, single(Challenge), Credential.ADMIN, json=json, headers=headers)

    @endpoint
    def admin_correct_announcement(
        self, challenge: str, at: datetime, text: str | None, *, idempotency_key: str | None = None
    ) -> Call[Challenge]:
        """Replace or withdraw an announcement.

        Parameters
        ----------
        challenge : str
        at : datetime.datetime
            Time of the announcement.
        text : str or None
            None withdraws it.

        Returns
        -------
        Challenge
        """
        where, body = f"/admin/challenges/{segment(challenge)}/announcements", {"text": text}
        headers = keyed(idempotency_key)
        return Call(
            *("PATCH", where, single(Challenge), Credential.ADMIN),
            json={"at": at.isoformat(), **body},
            headers=headers,
        )

    @endpoint
    def admin_close_challenge(self, name: str, *, idempotency_key: str | None = None) -> Call[Challenge]:
        """Take no more submissions; final results come when those under way are scored."""
        where = f"/admin/challenges/{segment(name)}/close"
        return Call("POST", where, single(Challenge), Credential.ADMIN, headers=keyed(idempotency_key))

    @endpoint
    def admin_open_challenge(
        self, name: str, *, closes_at: datetime | None = None, idempotency_key: str | None = None
    ) -> Call[Challenge]:
        """Open a challenge now, or again.

        Parameters
        ----------
        name : str
        closes_at : datetime.datetime, optional
            When it closes.

        Returns
        -------
        Challenge

        Raises
        ------
        Conflict
            If it has had final results.
        """
        where = f"/admin/challenges/{segment(name)}/open"
        query = given(closes_at=closes_at.isoformat() if closes_at else None)
        return Call(
            "POST", where, single(Challenge), Credential.ADMIN, query=query, headers=keyed(idempotency_key)
        )


def _in_json(fields: Mapping[str, object]) -> dict[str, object]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields.items()
    }


def _submission(challenge: str, submission_id: str, action: str) -> str:
    return f"/admin/challenges/{segment(challenge)}/submissions/{segment(submission_id)}/{action}"
