"""Calls about who takes part in challenges: in teams, by invitation, or as members."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from collidium.client.answers import listed, single
from collidium.client.calls.call import Call, Credential, endpoint, given, keyed, segment
from collidium.records import Invitation, Member, MembersAdded, Page, Participation, Submission, Team


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
