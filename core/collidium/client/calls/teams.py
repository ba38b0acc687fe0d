"""Calls about teams, invitations, and the members of challenges."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from collidium.client.calls.call import Call, Credential, endpoint, idempotency_header, not_none, segment
from collidium.client.responses import listed, single
from collidium.records import Invitation, Member, MembersAdded, Page, Participation, Submission, Team


class TeamCalls:
    """Calls about teams, invitations, and the members of challenges."""

    @endpoint
    def teams(
        self, challenge: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Team]]:
        """List the teams of a challenge, the latest first.

        Parameters
        ----------
        challenge : str
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Team

        Raises
        ------
        NotFound
            If there is no such challenge.
        """
        query = not_none(limit=limit, cursor=cursor)
        return Call("GET", _of(challenge, "teams"), listed(Team), Credential.NONE, query=query)

    @endpoint
    def team(self, challenge: str, invitation: str | None = None) -> Call[Participation]:
        """Return whether the account may submit to a challenge, and its team.

        Parameters
        ----------
        challenge : str
        invitation : str, optional
            Code of an invitation, whose team is returned as ``invited_to``.

        Returns
        -------
        Participation

        Raises
        ------
        NotFound
            If there is no such challenge.
        """
        query = not_none(invitation=invitation)
        return Call("GET", _of(challenge, "team"), single(Participation), query=query)

    @endpoint
    def team_submissions(
        self, challenge: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Submission]]:
        """List the submissions of the account's team, newest first.

        Parameters
        ----------
        challenge : str
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Submission

        Raises
        ------
        NotFound
            If there is no such challenge, or the account is in no team.
        """
        query = not_none(limit=limit, cursor=cursor)
        return Call("GET", _of(challenge, "team/submissions"), listed(Submission), query=query)

    @endpoint
    def new_team(self, challenge: str, name: str) -> Call[Participation]:
        """Create a team with the account as its captain.

        Parameters
        ----------
        challenge : str
        name : str
            Shown on the leaderboard; in any script.

        Returns
        -------
        Participation

        Raises
        ------
        InvalidInput
            If the name cannot be used.
        NotFound
            If there is no such challenge.
        Forbidden
            If the challenge is for members, and the account is none.
        Conflict
            If the name is taken, the account is in a team or has submitted alone, or teams are fixed.
        """
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
            Number of accounts that may use it.
        expires_at : datetime.datetime, optional

        Returns
        -------
        Invitation
            The only response with its ``code``.

        Raises
        ------
        InvalidInput
            If ``expires_at`` is in the past.
        NotFound
            If there is no such challenge, or the account is in no team.
        Forbidden
            If the account is not the captain.
        Conflict
            If teams are fixed, or the team has too many invitations.
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
            Code of an invitation.

        Returns
        -------
        Participation

        Raises
        ------
        NotFound
            If there is no such challenge or invitation.
        Forbidden
            If the invitation is to a team, the challenge is for members, and the account is none.
        Conflict
            If the invitation has expired or is used up, the team is full, or the account cannot join it.
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

        Raises
        ------
        NotFound
            If the account is in no team, or the other not in the same.
        Forbidden
            If another is removed and the account is not the captain.
        Conflict
            If the team has submitted, or teams are fixed.
        """
        where = _of(challenge, f"team/members/{segment(hub_username)}")
        return Call("DELETE", where, single(Participation))

    @endpoint
    def admin_members(
        self, challenge: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Member]]:
        """List the members of a challenge, the latest first.

        Parameters
        ----------
        challenge : str
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Member

        Raises
        ------
        NotFound
            If there is no such challenge.
        """
        where, query = _of(challenge, "members", "/admin"), not_none(limit=limit, cursor=cursor)
        return Call("GET", where, listed(Member), Credential.ADMIN, query=query)

    @endpoint
    def admin_add_members(
        self, challenge: str, hub_usernames: Sequence[str], *, idempotency_key: str | None = None
    ) -> Call[MembersAdded]:
        """Add all of the accounts to the members of a challenge, or none.

        Parameters
        ----------
        challenge : str
        hub_usernames : sequence of str
            They need not have signed in yet.
        idempotency_key : str, optional

        Returns
        -------
        MembersAdded

        Raises
        ------
        InvalidInput
            With all names that no account can have in ``errors``.
        NotFound
            If there is no such challenge.
        """
        where, headers = _of(challenge, "members", "/admin"), idempotency_header(idempotency_key)
        body = {"hub_usernames": list(hub_usernames)}
        return Call("POST", where, single(MembersAdded), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_remove_member(
        self, challenge: str, hub_username: str, *, idempotency_key: str | None = None
    ) -> Call[Member]:
        """Remove an account from the members of a challenge; unused invitations to be a member expire.

        Parameters
        ----------
        challenge, hub_username : str
        idempotency_key : str, optional

        Returns
        -------
        Member

        Raises
        ------
        NotFound
            If there is no such challenge, or the account is not a member.
        """
        where = _of(challenge, f"members/{segment(hub_username)}", "/admin")
        return Call(
            "DELETE", where, single(Member), Credential.ADMIN, headers=idempotency_header(idempotency_key)
        )

    @endpoint
    def admin_invite(
        self, challenge: str, *, uses: int = 1, expires_at: datetime | None = None
    ) -> Call[Invitation]:
        """Create an invitation to the members of a challenge.

        Parameters
        ----------
        challenge : str
        uses : int
            Number of accounts that may use it.
        expires_at : datetime.datetime, optional

        Returns
        -------
        Invitation
            The only response with its ``code``.

        Raises
        ------
        InvalidInput
            If ``expires_at`` is in the past.
        NotFound
            If there is no such challenge.
        """
        where, body = _of(challenge, "invitations", "/admin"), _invited(uses, expires_at)
        return Call("POST", where, single(Invitation), Credential.ADMIN, json=body)

    @endpoint
    def admin_remove_member_of_team(
        self, challenge: str, hub_username: str, *, idempotency_key: str | None = None
    ) -> Call[Team]:
        """Remove an account and its submissions from its team; returns the team before the change.

        Parameters
        ----------
        challenge, hub_username : str
        idempotency_key : str, optional

        Returns
        -------
        Team

        Raises
        ------
        NotFound
            If there is no such challenge, or the account is in no team.
        Conflict
            If the challenge has final results.
        """
        where = _of(challenge, f"teams/members/{segment(hub_username)}", "/admin")
        return Call(
            "DELETE", where, single(Team), Credential.ADMIN, headers=idempotency_header(idempotency_key)
        )

    @endpoint
    def admin_dissolve_team(
        self, challenge: str, name: str, *, idempotency_key: str | None = None
    ) -> Call[Team]:
        """Dissolve a team; its submissions then belong to the accounts that sent them.

        Parameters
        ----------
        challenge : str
        name : str
            Name of the team.
        idempotency_key : str, optional

        Returns
        -------
        Team

        Raises
        ------
        NotFound
            If there is no such challenge or team.
        Conflict
            If the challenge has final results.
        """
        where, headers = _of(challenge, "teams/dissolve", "/admin"), idempotency_header(idempotency_key)
        return Call("POST", where, single(Team), Credential.ADMIN, json={"name": name}, headers=headers)


def _of(challenge: str, what: str, root: str = "/v1") -> str:
    return f"{root}/challenges/{segment(challenge)}/{what}"


def _invited(uses: int, expires_at: datetime | None) -> dict[str, Any]:
    return not_none(uses=uses, expires_at=expires_at and expires_at.isoformat())
