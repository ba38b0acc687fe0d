"""The tables of submissions and teams, which this package and :mod:`collidium.organising` read and write.

Docstrings of models are comments of tables: a change needs a migration.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tortoise import fields
from tortoise.models import Model

from collidium.challenges import ParticipantField
from collidium.scoring.truth.parts import ScoredTruth
from collidium.truth.columns import ScoredTruthField


class Upload(Model):
    """A file of predictions that comes in several requests."""

    # Also the name of the file with its bytes.
    id = fields.CharField(max_length=32, primary_key=True)
    account_id = fields.BigIntField(db_index=True)
    challenge = fields.CharField(max_length=64)
    # As announced; the complete file must match.
    sha256 = fields.CharField(max_length=64)
    size_bytes = fields.BigIntField()
    model_repo = fields.CharField(max_length=200, null=True)
    # The submission of the complete file; None: it is not complete.
    submission_id = fields.CharField(max_length=32, null=True)
    # Decides whether it began before the challenge closed.
    began_at = fields.DatetimeField()
    expires_at = fields.DatetimeField(db_index=True)

    class Meta(Model.Meta):
        table = "uploads"


class Team(Model):
    """People who compete in a challenge as one participant."""

    id = fields.BigIntField(primary_key=True)
    challenge = fields.CharField(max_length=64)
    name = fields.CharField(max_length=64)
    # The name for comparisons: without case, variants of characters and invisible ones.
    name_key = fields.CharField(max_length=64)
    captain_id = fields.BigIntField()
    created_at = fields.DatetimeField(auto_now_add=True)

    class Meta(Model.Meta):
        table = "teams"
        unique_together = (("challenge", "name_key"),)


class TeamMember(Model):
    """An account in its only team of a challenge."""

    id = fields.BigIntField(primary_key=True)
    challenge = fields.CharField(max_length=64)
    team_id = fields.BigIntField(db_index=True)
    account_id = fields.BigIntField(db_index=True)
    hub_username = fields.CharField(max_length=96)

    class Meta(Model.Meta):
        table = "team_members"
        unique_together = (("challenge", "account_id"),)


class Submission(Model):
    """Predictions of one account that were scored."""

    id = fields.CharField(max_length=32, primary_key=True)
    challenge = fields.CharField(max_length=64)
    task = fields.CharField(max_length=64)
    account_id = fields.BigIntField()
    hub_username = fields.CharField(max_length=96)
    sha256 = fields.CharField(max_length=64)
    size_bytes = fields.BigIntField()
    rows = fields.BigIntField()
    scores: Any = fields.JSONField()
    # Standard errors by metric; None in submissions from before they were computed.
    uncertainties: Any = fields.JSONField(null=True)
    # The participant: an account, a team, or a single baseline.
    participant = ParticipantField()
    # The name of its team.
    team = fields.CharField(max_length=64, null=True)
    # ``ranked``, or why not: ``banned``, ``withdrawn``, ``disqualified``, ``practice``, ``not_final``.
    standing = fields.CharField(max_length=16, default="ranked")
    standing_reason = fields.CharField(max_length=1000, null=True)
    # When its participant chose it for the final results.
    chosen_at = fields.DatetimeField(null=True)
    # The sort key of the leaderboard: the primary metric, larger is better. None: it has no rank.
    rank_score = fields.FloatField(null=True)
    # Whether it is its participant's best, which represents it on the leaderboard.
    represents = fields.BooleanField(default=False)
    warnings: Any = fields.JSONField(default=list)
    credits_earned = fields.DecimalField(max_digits=18, decimal_places=3, default=Decimal(0))
    model_repo = fields.CharField(max_length=200, null=True)
    # The state of the submitter's claim to that repository; None without a model, or if never checked.
    model_claim = fields.CharField(max_length=16, null=True)
    code_url = fields.CharField(max_length=500, null=True)
    paper_url = fields.CharField(max_length=500, null=True)
    # ``NAMESPACE/NAME:PATH@COMMIT`` on the hub. None: the file was uploaded.
    from_hub = fields.CharField(max_length=500, null=True)
    # The evaluation of the model that made the predictions, and its card; None for files of predictions.
    evaluation_id = fields.CharField(max_length=32, null=True)
    model: Any = fields.JSONField(null=True)
    scorer_version = fields.CharField(max_length=32)
    truth_version = ScoredTruthField[ScoredTruth]()
    submitted_at = fields.DatetimeField()
    # When an operator verified its self-reported metrics.
    verified_at = fields.DatetimeField(null=True)
    # Whether it is of the platform's own baselines, which earn nothing.
    baseline = fields.BooleanField(default=False)
    # Whether it raised a best when these were last decided; None: unknown.
    raised_best = fields.BooleanField(null=True, default=False)
    # The revision of the leaderboard with which it last lost its rank; None: it never did, or earlier than
    # this was recorded.
    left_revision = fields.BigIntField(null=True)

    class Meta(Model.Meta):
        table = "submissions"
        unique_together = (
            ("account_id", "challenge", "sha256", "scorer_version", "truth_version", "participant"),
        )
        # In addition two in the order of leaderboards (migration 0005_long_lists).
        indexes = (
            ("challenge", "submitted_at", "id"),
            ("challenge", "standing", "submitted_at", "id"),
            ("challenge", "participant", "submitted_at"),
            ("challenge", "truth_version", "hub_username", "rank_score"),
            ("challenge", "truth_version", "model_repo", "rank_score"),
            ("submitted_at", "id"),
            ("task", "submitted_at", "id"),
            ("account_id", "submitted_at", "id"),
        )


class Scoring(Model):
    """What one scorer made of a submission against one truth. What counts stands in its row, too."""

    id = fields.BigIntField(primary_key=True)
    submission_id = fields.CharField(max_length=32)
    scorer_version = fields.CharField(max_length=32)
    truth_version = ScoredTruthField[ScoredTruth]()
    scores: Any = fields.JSONField()
    uncertainties: Any = fields.JSONField(null=True)
    # Metrics of resampled events, which decide whether gains are significant. Never published.
    replicates: Any = fields.JSONField(null=True)
    # The seed of their draws; empty: public ones.
    seed = fields.CharField(max_length=64, default="", db_default="")
    # Those of the primary metric as float32, larger is better, for rank intervals of large leaderboards.
    primary_draws = fields.BinaryField(null=True)
    # Scores in bins; None from before they were computed.
    curves: Any = fields.JSONField(null=True)
    warnings: Any = fields.JSONField(default=list)
    scored_at = fields.DatetimeField()
    # When the scores became those of the submission; None: they were only previewed.
    applied_at = fields.DatetimeField(null=True)

    class Meta(Model.Meta):
        table = "scorings"
        unique_together = (("submission_id", "scorer_version", "truth_version"),)


class Rescoring(Model):
    """The last order of an operator to score the submissions to a challenge again, and what became of it."""

    challenge = fields.CharField(max_length=64, primary_key=True)
    # The percentage of events to make public; None: keep the truth.
    public_percent = fields.IntField(null=True)
    # Whether new scores are applied, or only previewed; and whether new bests are paid.
    applies = fields.BooleanField()
    pays = fields.BooleanField()
    # For the audit log; empty after the end.
    actor = fields.CharField(max_length=96)
    http_request_id = fields.CharField(max_length=64)
    asked_at = fields.DatetimeField()
    # Number of submissions scored, and of all.
    done = fields.IntField(default=0)
    submissions = fields.IntField(default=0)
    ended_at = fields.DatetimeField(null=True)
    # Why it failed; empty: it did not.
    problem = fields.TextField(default="")
    # Changes, and problems of submissions by id.
    changes: Any = fields.JSONField(default=list)
    unscored: Any = fields.JSONField(default=dict)
    # The lease of the process that works on it; others may take it after its end.
    lease = fields.CharField(max_length=32, default="")
    leased_until = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "rescorings"


class WaitingFile(Model):
    """A submission whose file cannot be scored now, for a rescoring or the end of its challenge."""

    id = fields.BigIntField(primary_key=True)
    challenge = fields.CharField(max_length=64)
    submission_id = fields.CharField(max_length=32)
    scorer_version = fields.CharField(max_length=32)
    truth_version = ScoredTruthField[ScoredTruth]()
    # Why it waits, or why it was left out.
    reason = fields.CharField(max_length=500)
    since = fields.DatetimeField()
    attempts = fields.IntField(default=0)
    retry_at = fields.DatetimeField()
    # When an operator left it out, or nothing waited for it any more; None: it waits.
    left_out_at = fields.DatetimeField(null=True)

    class Meta(Model.Meta):
        table = "waiting_files"
        unique_together = (("challenge", "submission_id", "scorer_version", "truth_version"),)


class Best(Model):
    """The best value of a metric so far, which only ever gets better."""

    id = fields.BigIntField(primary_key=True)
    challenge = fields.CharField(max_length=64)
    truth_version = ScoredTruthField[ScoredTruth]()
    metric = fields.CharField(max_length=64)
    value = fields.FloatField()
    submission_id = fields.CharField(max_length=32)

    class Meta(Model.Meta):
        table = "benchmark_bests"
        unique_together = (("challenge", "truth_version", "metric"),)
