"""Operators' calls about submissions: lists, verification, standing and new scores."""

from __future__ import annotations

from collidium.client.calls.call import Call, Credential, endpoint, idempotency_header, not_none, segment
from collidium.client.responses import listed, single
from collidium.records import Page, Ranking, Rescoring, Submission, WaitingFile


class AdminSubmissionCalls:
    """Operators' calls about submissions, their standing and their scores."""

    @endpoint
    def admin_submissions(
        self,
        *,
        task: str | None = None,
        user: str | None = None,
        unverified: bool = False,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Call[Page[Submission]]:
        """List the submissions of all accounts, newest first.

        Parameters
        ----------
        task, user : str, optional
            Only submissions to this task or challenge, of this account.
        unverified : bool
            Only self-reported submissions that are not verified.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Submission

        Raises
        ------
        NotFound
            If there is no such task or account.
        """
        query = not_none(task=task, user=user, unverified=unverified or None, limit=limit, cursor=cursor)
        return Call("GET", "/admin/submissions", listed(Submission), Credential.ADMIN, query=query)

    @endpoint
    def admin_challenge_submissions(
        self, challenge: str, *, user: str | None = None, limit: int | None = None, cursor: str | None = None
    ) -> Call[Page[Submission]]:
        """List the submissions to a challenge, newest first, including those without a rank.

        Parameters
        ----------
        challenge : str
        user : str, optional
            Only submissions of this account.
        limit, cursor : optional
            Page size, and ``next_cursor`` of the previous page.

        Returns
        -------
        Page of Submission

        Raises
        ------
        NotFound
            If there is no such challenge or account.
        """
        where = f"/admin/challenges/{segment(challenge)}/submissions"
        query = not_none(user=user, limit=limit, cursor=cursor)
        return Call("GET", where, listed(Submission), Credential.ADMIN, query=query)

    @endpoint
    def admin_verify(self, submission_id: str, *, idempotency_key: str | None = None) -> Call[Submission]:
        """Verify the self-reported scores of a submission, which then earn credits.

        Parameters
        ----------
        submission_id : str
        idempotency_key : str, optional

        Returns
        -------
        Submission

        Raises
        ------
        NotFound
            If there is no such submission.
        Conflict
            If its task has no self-reported scores that can be verified, or its account is banned.
        """
        where = f"/admin/submissions/{segment(submission_id)}/verify"
        return Call(
            "POST", where, single(Submission), Credential.ADMIN, headers=idempotency_header(idempotency_key)
        )

    @endpoint
    def admin_preview_standing(self, challenge: str, submission_id: str) -> Call[Ranking]:
        """Preview the rank changes of disqualifying a submission, or of reinstating a disqualified one.

        Parameters
        ----------
        challenge, submission_id : str

        Returns
        -------
        Ranking

        Raises
        ------
        NotFound
            If there is no such submission to the challenge.
        Conflict
            If the submission is not ranked and not disqualified.
        """
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
            Shown to everyone.
        take_back : bool
            Also take back the credits that it earned.
        idempotency_key : str, optional

        Returns
        -------
        Ranking

        Raises
        ------
        NotFound
            If there is no such submission to the challenge.
        Conflict
            If the submission is not ranked.
        """
        where = _submission(challenge, submission_id, "disqualify")
        body, headers = {"reason": reason, "take_back": take_back}, idempotency_header(idempotency_key)
        return Call("POST", where, single(Ranking), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_reinstate(
        self, challenge: str, submission_id: str, *, idempotency_key: str | None = None
    ) -> Call[Ranking]:
        """Rank a disqualified submission again.

        Parameters
        ----------
        challenge, submission_id : str
        idempotency_key : str, optional

        Returns
        -------
        Ranking

        Raises
        ------
        NotFound
            If there is no such submission to the challenge.
        Conflict
            If the submission is not disqualified.
        """
        where = _submission(challenge, submission_id, "reinstate")
        return Call(
            "POST", where, single(Ranking), Credential.ADMIN, headers=idempotency_header(idempotency_key)
        )

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
            Percentage of the events that count until the challenge closes.
        apply : bool
            Apply the new scores; by default only report what would change.
        idempotency_key : str, optional

        Returns
        -------
        Rescoring
            :meth:`admin_rescoring` returns its progress.

        Raises
        ------
        NotFound
            If there is no such challenge.
        Conflict
            If it has no truth, is being scored again, or cannot be split.
        """
        where, headers = (
            f"/admin/challenges/{segment(challenge)}/rescoring",
            idempotency_header(idempotency_key),
        )
        body = not_none(public_percent=public_percent, apply=apply)
        return Call("POST", where, single(Rescoring), Credential.ADMIN, json=body, headers=headers)

    @endpoint
    def admin_rescoring(self, challenge: str) -> Call[Rescoring]:
        """Return the progress or the result of the last rescoring of a challenge.

        Raises
        ------
        NotFound
            If there is no such challenge, or it was never scored again.
        """
        where = f"/admin/challenges/{segment(challenge)}/rescoring"
        return Call("GET", where, single(Rescoring), Credential.ADMIN)

    @endpoint
    def admin_waiting_files(self, challenge: str) -> Call[Page[WaitingFile]]:
        """List the submissions that a rescoring or the end of a challenge waits for, or that were left out.

        Raises
        ------
        NotFound
            If there is no such challenge.
        """
        where = f"/admin/challenges/{segment(challenge)}/waiting"
        return Call("GET", where, listed(WaitingFile), Credential.ADMIN)

    @endpoint
    def admin_retry_waiting(
        self, challenge: str, *, idempotency_key: str | None = None
    ) -> Call[Page[WaitingFile]]:
        """Try the files that wait in a challenge again, now and for another day.

        Parameters
        ----------
        challenge : str
        idempotency_key : str, optional

        Raises
        ------
        NotFound
            If there is no such challenge.
        Conflict
            If nothing waits.
        """
        where = f"/admin/challenges/{segment(challenge)}/waiting/retry"
        headers = idempotency_header(idempotency_key)
        return Call("POST", where, listed(WaitingFile), Credential.ADMIN, headers=headers)

    @endpoint
    def admin_leave_out(
        self, challenge: str, submission_id: str, reason: str, *, idempotency_key: str | None = None
    ) -> Call[WaitingFile]:
        """Wait no longer for a submission whose file cannot be scored: it loses its rank with the new scores.

        Parameters
        ----------
        challenge, submission_id : str
        reason : str
            For the audit log, and with the submission.
        idempotency_key : str, optional

        Raises
        ------
        NotFound
            If nothing waits for the submission.
        Conflict
            If it was left out before.
        """
        where, headers = (
            _submission(challenge, submission_id, "leave-out"),
            idempotency_header(idempotency_key),
        )
        body = {"reason": reason}
        return Call("POST", where, single(WaitingFile), Credential.ADMIN, json=body, headers=headers)


def _submission(challenge: str, submission_id: str, action: str) -> str:
    return f"/admin/challenges/{segment(challenge)}/submissions/{segment(submission_id)}/{action}"
