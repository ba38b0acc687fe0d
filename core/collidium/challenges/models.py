"""The tables of challenges, which this package and :mod:`collidium.organising` read and write.

Docstrings of models are comments of tables: a change needs a migration.
"""

from __future__ import annotations

from typing import Any

from tortoise import fields
from tortoise.models import Model

from collidium.scoring.truth.parts import ScoredTruth
from collidium.truth.columns import ScoredTruthField


class Challenge(Model):
    """A task, its truth and its leaderboard. Each task has one of its own name, which has no dates."""

    name = fields.CharField(max_length=64, primary_key=True)
    task = fields.CharField(max_length=64)
    title = fields.CharField(max_length=200, default="")
    listed = fields.BooleanField(default=True)
    # Submissions are accepted between these dates; None: no limit.
    opens_at = fields.DatetimeField(null=True)
    closes_at = fields.DatetimeField(null=True)
    # The last announced date, and the kind of the announcement.
    notice = fields.CharField(max_length=64, default="")
    # When its final results were applied.
    ended_at = fields.DatetimeField(null=True)
    # Whether submissions after that are scored on the public part, without a rank.
    practice = fields.BooleanField(default=False)
    # None: the platform's setting.
    submissions_per_day = fields.IntField(null=True)
    # Maximum number of a participant's submissions in the final results.
    final_submissions = fields.IntField(default=2)
    rewarded = fields.BooleanField(default=True)
    # Markdown.
    rules = fields.TextField(default="")
    announcements: Any = fields.JSONField(default=list)
    # ``open``, or ``members``: only accounts on its list or in the organisation of the hub may submit.
    access = fields.CharField(max_length=16, default="open")
    organisation = fields.CharField(max_length=96, null=True)
    # Maximum number of members of a team; below 2 there are no teams.
    team_size = fields.IntField(default=0)
    # When teams are fixed; None: when it closes.
    teams_frozen_at = fields.DatetimeField(null=True)
    # The truth that submissions are scored against; None until one is imported.
    truth_version = ScoredTruthField[ScoredTruth | None](null=True)
    # Increases with every change of the leaderboard; identifies its version together with the truth.
    revision = fields.BigIntField(default=0)
    changed_at = fields.DatetimeField(auto_now=True)

    class Meta(Model.Meta):
        table = "challenges"


class Arrival(Model):
    """A file on its way to a challenge, for whose end it may count."""

    id = fields.CharField(max_length=32, primary_key=True)
    challenge = fields.CharField(max_length=64, db_index=True)
    # When it was complete; None: it is being received.
    received_at = fields.DatetimeField(null=True)
    # Renewed while its process runs.
    leased_until = fields.DatetimeField()
    # The hash of a model that is stored before an evaluation refers to it.
    sha256 = fields.CharField(max_length=64, null=True)

    class Meta(Model.Meta):
        table = "arrivals"


class Member(Model):
    """Someone who may submit to a challenge for members only, who may not have signed in yet."""

    id = fields.BigIntField(primary_key=True)
    challenge = fields.CharField(max_length=64)
    hub_username = fields.CharField(max_length=96)
    name_key = fields.CharField(max_length=96, db_index=True)
    added_at = fields.DatetimeField(auto_now_add=True)

    class Meta(Model.Meta):
        table = "challenge_members"
        unique_together = (("challenge", "name_key"),)


class Invitation(Model):
    """A code that admits to the members of a challenge, or to a team, so many times until its end."""

    # SHA-256 of the code, which is not stored.
    digest = fields.CharField(max_length=64, primary_key=True)
    challenge = fields.CharField(max_length=64, db_index=True)
    # None: an invitation to the members of the challenge.
    team_id = fields.BigIntField(null=True)
    uses_left = fields.IntField()
    expires_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "invitations"
