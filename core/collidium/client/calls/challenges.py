"""Operators' calls that create and change challenges."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Unpack

from collidium.client.calls.call import Call, Credential, endpoint, idempotency_header, not_none, segment
from collidium.client.responses import listed, single
from collidium.records import Challenge, Page, RosterEntry, SplitPreview
from collidium.records.challenge_settings import SettingOptions


class ChallengeFields(SettingOptions, total=False):
    """Settings of a challenge; dates have a time zone, rules and announcements are Markdown."""

    #: Added to the existing announcements.
    announcement: str


class ChallengeCalls:
    """Operators' calls about challenges."""

    @endpoint
    def admin_roster(
        self, challenge: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[RosterEntry]]:
        """List the participants of a challenge by name, including members who have not submitted.

        Parameters
        ----------
        challenge : str
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of RosterEntry

        Raises
        ------
        NotFound
            If there is no such challenge.
        """
        where, query = f"/admin/challenges/{segment(challenge)}/roster", not_none(limit=limit, cursor=cursor)
        return Call("GET", where, listed(RosterEntry), Credential.ADMIN, query=query)

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
        """Create a challenge of a task.

        Parameters
        ----------
        name : str
            Two words or more of a-z and 0-9, joined by hyphens.
        task : str
            Name of an installed task.
        truth_version : str, optional
            By default the truth of the task's own challenge.
        idempotency_key : str, optional
        **fields
            Settings, see :class:`ChallengeFields`.

        Returns
        -------
        Challenge

        Raises
        ------
        InvalidInput
            With all problems in ``errors``.
        NotFound
            If there is no such task.
        Conflict
            If the name is taken or the task has no truth.
        """
        json = _in_json({"name": name, "task": task, **not_none(truth_version=truth_version), **fields})
        headers = idempotency_header(idempotency_key)
        return Call(
            "POST", "/admin/challenges", single(Challenge), Credential.ADMIN, json=json, headers=headers
        )

    @endpoint
    def admin_edit_challenge(
        self, name: str, *, idempotency_key: str | None = None, **fields: Unpack[ChallengeFields]
    ) -> Call[Challenge]:
        """Change settings of a challenge.

        Parameters
        ----------
        name : str
        idempotency_key : str, optional
        **fields
            Settings to change, see :class:`ChallengeFields`.

        Returns
        -------
        Challenge

        Raises
        ------
        InvalidInput
            With all problems in ``errors``.
        NotFound
            If there is no such challenge.
        Conflict
            If the change contradicts its submissions or teams.
        """
        where, headers = f"/admin/challenges/{segment(name)}", idempotency_header(idempotency_key)
        json = _in_json(fields)
        return Call("PATCH", where, single(Challenge), Credential.ADMIN, json=json, headers=headers)

    @endpoint
    def admin_preview_split(
        self,
        name: str,
        public_percent: int,
        *,
        task: str | None = None,
        truth_version: str | None = None,
        closes_at: datetime | None = None,
    ) -> Call[SplitPreview]:
        """Preview which tasks and challenges a public part closes to submissions, and until when.

        Parameters
        ----------
        name : str
            A challenge, or the name of a new one.
        public_percent : int
            Percentage of the events that would count, from 1 to 99.
        task, truth_version : str, optional
            Those of a new challenge.
        closes_at : datetime, optional
            When it is going to close; by default its date.

        Returns
        -------
        SplitPreview

        Raises
        ------
        NotFound
            If there is no such challenge and no task is given.
        Conflict
            If it has no truth.
        """
        query = {
            "public_percent": str(public_percent),
            **not_none(task=task, truth_version=truth_version),
            **({"closes_at": closes_at.isoformat()} if closes_at else {}),
        }
        where = f"/admin/challenges/{segment(name)}/split"
        return Call("GET", where, single(SplitPreview), Credential.ADMIN, query=query)

    @endpoint
    def admin_refresh_hidden(
        self, name: str, truth_version: str, *, idempotency_key: str | None = None
    ) -> Call[Challenge]:
        """Switch an open challenge to the events of another imported truth, and run its models on them.

        Parameters
        ----------
        name : str
            Name of the challenge.
        truth_version : str
            A truth that was imported with inputs of models.
        idempotency_key : str, optional

        Returns
        -------
        Challenge

        Raises
        ------
        NotFound
            If there is no such challenge.
        Conflict
            If the challenge is not open, or the truth cannot be used.
        """
        where, headers = (
            f"/admin/challenges/{segment(name)}/refresh-hidden",
            idempotency_header(idempotency_key),
        )
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
        idempotency_key : str, optional

        Returns
        -------
        Challenge

        Raises
        ------
        NotFound
            If there is no such challenge or announcement.
        """
        where = f"/admin/challenges/{segment(challenge)}/announcements"
        json = {"at": at.isoformat(), "text": text}
        headers = idempotency_header(idempotency_key)
        return Call("PATCH", where, single(Challenge), Credential.ADMIN, json=json, headers=headers)

    @endpoint
    def admin_close_challenge(self, name: str, *, idempotency_key: str | None = None) -> Call[Challenge]:
        """Close a challenge; its final results follow when all submissions in progress are scored.

        Parameters
        ----------
        name : str
        idempotency_key : str, optional

        Returns
        -------
        Challenge

        Raises
        ------
        NotFound
            If there is no such challenge.
        Conflict
            If it has not opened yet.
        """
        where = f"/admin/challenges/{segment(name)}/close"
        return Call(
            "POST", where, single(Challenge), Credential.ADMIN, headers=idempotency_header(idempotency_key)
        )

    @endpoint
    def admin_open_challenge(
        self, name: str, *, closes_at: datetime | None = None, idempotency_key: str | None = None
    ) -> Call[Challenge]:
        """Open a challenge now, or reopen it.

        Parameters
        ----------
        name : str
        closes_at : datetime.datetime, optional
        idempotency_key : str, optional

        Returns
        -------
        Challenge

        Raises
        ------
        NotFound
            If there is no such challenge.
        Conflict
            If its final results were published.
        """
        where = f"/admin/challenges/{segment(name)}/open"
        query = not_none(closes_at=closes_at.isoformat() if closes_at else None)
        return Call(
            "POST",
            where,
            single(Challenge),
            Credential.ADMIN,
            query=query,
            headers=idempotency_header(idempotency_key),
        )


def _in_json(fields: Mapping[str, object]) -> dict[str, object]:
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields.items()
    }
