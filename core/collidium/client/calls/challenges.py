"""Calls about challenges: what they are, who takes part, in teams or as members, and what counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypedDict, Unpack

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, Credential, endpoint, given, keyed, segment
from collidium.records import (
    Challenge,
    Invitation,
    Member,
    MembersAdded,
    Page,
    Participation,
    Ranking,
    Rescoring,
    RosterEntry,
    Submission,
    Team,
)


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


class TeamCalls:
    """Calls about teams, invitations, and the members of challenges."""

    @endpoint
    def teams(
        self, challenge: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Team]]:
        """A page of the teams of a challenge, the latest first."""
        query = given(limit=limit, cursor=cursor)
        return Call("GET", _of(challenge, "teams"), listed(Team), Credential.NONE, query=query)

    @endpoint
    def team(self, challenge: str, invitation: str | None = None) -> Call[Participation]:
        """Return whether and with which team the account may submit to a challenge.

        Parameters
        ----------
        challenge : str
        invitation : str, optional
            Code of an invitation, whose team is returned, too.

        Returns
        -------
        Participation
        """
        query = given(invitation=invitation)
        return Call("GET", _of(challenge, "team"), single(Participation), query=query)

    @endpoint
    def team_submissions(
        self, challenge: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Submission]]:
        """List the submissions of the account's team, newest first.

        Parameters
        ----------
        challenge : str
        limit, cursor
            The page.

        Returns
        -------
        Page of Submission

        Raises
        ------
        NotFound
            If the account is in no team.
        """
        query = given(limit=limit, cursor=cursor)
        return Call("GET", _of(challenge, "team/submissions"), listed(Submission), query=query)

    @endpoint
    def new_team(self, challenge: str, name: str) -> Call[Participation]:
        """Make a team, whose captain the account is."""
        return Call("POST", _of(challenge, "team"), single(Participation), json={"name": name})

    @endpoint
    def invite_to_team(
        self, challenge: str, *, uses: int = 1, expires_at: datetime | None = None
    ) -> Call[Invitation]:
        """Create an invitation to the account's team.

        Parameters
        ----------
        challenge : str
        uses : int
            How many accounts may use it.
        expires_at : datetime.datetime, optional

        Returns
        -------
        Invitation
            Its ``code`` is shown only here.
        """
        body = _invited(uses, expires_at)
        return Call("POST", _of(challenge, "team/invitations"), single(Invitation), json=body)

    @endpoint
    def join(self, challenge: str, code: str) -> Call[Participation]:
        """Join a team, or the members of a challenge.

        Parameters
        ----------
        challenge : str
        code : str
            That of an invitation.

        Returns
        -------
        Participation
        """
        return Call("POST", _of(challenge, "join"), single(Participation), json={"code": code})

    @endpoint
    def remove_from_team(self, challenge: str, hub_username: str) -> Call[Participation]:
        """Leave the account's team, or remove a member as its captain.

        Parameters
        ----------
        challenge : str
        hub_username : str
            The account that leaves.

        Returns
        -------
        Participation
        """
        where = _of(challenge, f"team/members/{segment(hub_username)}")
        return Call("DELETE", where, single(Participation))

    @endpoint
    def admin_members(
        self, challenge: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Member]]:
        """A page of the members of a challenge, those added last first."""
        where, query = _of(challenge, "members", "/admin"), given(limit=limit, cursor=cursor)
        return Call("GET", where, listed(Member), Credential.ADMIN, query=query)

    @endpoint
    def admin_add_members(
        self, challenge: str, hub_usernames: Sequence[str], *, idempotency_key: str | None = None
    ) -> Call[MembersAdded]:
        """Add members to a challenge: all or none.

        Parameters
        ----------
        challenge : str
        hub_usernames : sequence of str
            Accounts, which need not have signed in yet.

        Returns
        -------
        MembersAdded
        """
        where, headers = _of(challenge, "members", "/admin"), keyed(idempotency_key)
        body = {"hub_usernames": list(hub_usernames)}
        return Call("POST", where, single(MembersAdded), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_remove_member(
        self, challenge: str, hub_username: str, *, idempotency_key: str | None = None
    ) -> Call[Member]:
        """Take an account from the members of a challenge; the invitations to be one end."""
        where = _of(challenge, f"members/{segment(hub_username)}", "/admin")
        return Call("DELETE", where, single(Member), Credential.ADMIN, headers=keyed(idempotency_key))

    @endpoint
    def admin_invite(
        self, challenge: str, *, uses: int = 1, expires_at: datetime | None = None
    ) -> Call[Invitation]:
        """Create an invitation to the members of a challenge.

        Parameters
        ----------
        challenge : str
        uses : int
            How many accounts may use it.
        expires_at : datetime.datetime, optional

        Returns
        -------
        Invitation
            Its ``code`` is shown only here.
        """
        where, body = _of(challenge, "invitations", "/admin"), _invited(uses, expires_at)
        return Call("POST", where, single(Invitation), Credential.ADMIN, json=body)

    @endpoint
    def admin_remove_member_of_team(
        self, challenge: str, hub_username: str, *, idempotency_key: str | None = None
    ) -> Call[Team]:
        """Take an account out of its team, with all that it has submitted; returns the team as it was."""
        where = _of(challenge, f"teams/members/{segment(hub_username)}", "/admin")
        return Call("DELETE", where, single(Team), Credential.ADMIN, headers=keyed(idempotency_key))

    @endpoint
    def admin_dissolve_team(
        self, challenge: str, name: str, *, idempotency_key: str | None = None
    ) -> Call[Team]:
        """Dissolve a team: its submissions compete for the accounts that sent them.

        Parameters
        ----------
        challenge : str
        name : str
            That of the team.

        Returns
        -------
        Team
        """
        where, headers = _of(challenge, "teams/dissolve", "/admin"), keyed(idempotency_key)
        return Call("POST", where, single(Team), Credential.ADMIN, json={"name": name}, headers=headers)


def _of(challenge: str, what: str, root: str = "/v1") -> str:
    return f"{root}/challenges/{segment(challenge)}/{what}"


def _invited(uses: int, expires_at: datetime | None) -> dict[str, Any]:
    return given(uses=uses, expires_at=expires_at and expires_at.isoformat())
