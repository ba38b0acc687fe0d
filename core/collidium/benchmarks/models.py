"""Tables of the benchmarks. Only this package reads and writes them."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tortoise import fields
from tortoise.models import Model


class Challenge(Model):
    """A task, its truth and its leaderboard. Each task has one of its own name, which has no dates."""

    name = fields.CharField(max_length=64, primary_key=True)
    task = fields.CharField(max_length=64)
    title = fields.CharField(max_length=200, default="")
    listed = fields.BooleanField(default=True)
    # Submissions are taken from the one to the other; None: always.
    opens_at = fields.DatetimeField(null=True)
    closes_at = fields.DatetimeField(null=True)
    # The last date that was announced, and as what.
    notice = fields.CharField(max_length=64, default="")
    # When its final results came into force.
    ended_at = fields.DatetimeField(null=True)
    # Whether submissions are scored on the public part after that, and never ranked.
    practice = fields.BooleanField(default=False)
    # None: the platform's setting.
    submissions_per_day = fields.IntField(null=True)
    # How many submissions of a participant the final results are chosen from.
    final_submissions = fields.IntField(default=2)
    rewarded = fields.BooleanField(default=True)
    # Markdown.
    rules = fields.TextField(default="")
    announcements: Any = fields.JSONField(default=list)
    # ``open``, or ``members``: only those on its list, or in the organisation of the hub, submit.
    access = fields.CharField(max_length=16, default="open")
    organisation = fields.CharField(max_length=96, null=True)
    # How many people a team may have; below 2 there are no teams.
    team_size = fields.IntField(default=0)
    # None: when it closes.
    teams_frozen_at = fields.DatetimeField(null=True)
    # The truth that submissions are scored against, None until one was imported.
    truth_version = fields.CharField(max_length=64, null=True)
    # Counts the submissions kept: with the truth version, it names a version of the leaderboard.
    revision = fields.BigIntField(default=0)
    changed_at = fields.DatetimeField(auto_now=True)

    class Meta(Model.Meta):
        table = "challenges"


class Arrival(Model):
    """A file on its way to a challenge, for whose end it may count."""

    id = fields.CharField(max_length=32, primary_key=True)
    challenge = fields.CharField(max_length=64, db_index=True)
    # When it was there as a whole; None: it is being received.
    received_at = fields.DatetimeField(null=True)
    # Renewed while its process lives.
    leased_until = fields.DatetimeField()
    # Of a model that is put into the storage before a row refers to it.
    sha256 = fields.CharField(max_length=64, null=True)

    class Meta(Model.Meta):
        table = "arrivals"


class Upload(Model):
    """A file of predictions that comes in several requests."""

    # Names the file with its bytes, too.
    id = fields.CharField(max_length=32, primary_key=True)
    account_id = fields.BigIntField(db_index=True)
    challenge = fields.CharField(max_length=64)
    # As announced; the file has to have them.
    sha256 = fields.CharField(max_length=64)
    size_bytes = fields.BigIntField()
    model_repo = fields.CharField(max_length=200, null=True)
    # What became of it. None: it is not complete.
    submission_id = fields.CharField(max_length=32, null=True)
    # Decides whether it came before the challenge closed.
    began_at = fields.DatetimeField()
    expires_at = fields.DatetimeField(db_index=True)

    class Meta(Model.Meta):
        table = "uploads"


class Team(Model):
    """People who compete in a challenge as one participant."""

    id = fields.BigIntField(primary_key=True)
    challenge = fields.CharField(max_length=64)
    name = fields.CharField(max_length=64)
    # The name without its case, variants of characters, and what shows nothing.
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

    # SHA-256 of the code, which is stored nowhere.
    digest = fields.CharField(max_length=64, primary_key=True)
    challenge = fields.CharField(max_length=64, db_index=True)
    # None: to the members of the challenge.
    team_id = fields.BigIntField(null=True)
    uses_left = fields.IntField()
    expires_at = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "invitations"


class TruthVersion(Model):
    """Truth that was imported for a task (its files lie in the data directory and are never served)."""

    id = fields.BigIntField(primary_key=True)
    task = fields.CharField(max_length=64)
    version = fields.CharField(max_length=64)
    manifest: Any = fields.JSONField()
    imported_at = fields.DatetimeField(auto_now_add=True)

    class Meta(Model.Meta):
        table = "truth_versions"
        unique_together = (("task", "version"),)


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
    # Standard errors by metric. None for what was scored before there were any.
    uncertainties: Any = fields.JSONField(null=True)
    # Who competes: an account, or a team; a baseline stands for itself.
    participant = fields.CharField(max_length=48)
    # The name of that team. None: no team.
    team = fields.CharField(max_length=64, null=True)
    # ``ranked``, or why it has no rank: ``withdrawn``, ``disqualified``, ``practice``, ``not_final``.
    standing = fields.CharField(max_length=16, default="ranked")
    standing_reason = fields.CharField(max_length=1000, null=True)
    # When its participant chose it for the final results.
    chosen_at = fields.DatetimeField(null=True)
    # The primary metric, larger is better: what the leaderboard sorts by. None: it has no rank.
    rank_score = fields.FloatField(null=True)
    # Whether it is the best of its participant, which stands on the leaderboard.
    represents = fields.BooleanField(default=False)
    warnings: Any = fields.JSONField(default=list)
    credits_earned = fields.DecimalField(max_digits=18, decimal_places=3, default=Decimal(0))
    model_repo = fields.CharField(max_length=200, null=True)
    # What is known of the submitter's claim to that repository. None: no model, or it was never checked.
    model_claim = fields.CharField(max_length=16, null=True)
    code_url = fields.CharField(max_length=500, null=True)
    paper_url = fields.CharField(max_length=500, null=True)
    # ``NAMESPACE/NAME:PATH@COMMIT`` on the hub. None: the file was uploaded.
    from_hub = fields.CharField(max_length=500, null=True)
    # The evaluation of a model that made the predictions, and what it is. None: a file of predictions.
    evaluation_id = fields.CharField(max_length=32, null=True)
    model: Any = fields.JSONField(null=True)
    scorer_version = fields.CharField(max_length=32)
    truth_version = fields.CharField(max_length=64)
    submitted_at = fields.DatetimeField()
    # When an operator verified what the submitter measured. None: not verified.
    verified_at = fields.DatetimeField(null=True)
    # Whether the account was marked as that of the platform's baselines, which earn nothing.
    baseline = fields.BooleanField(default=False)

    class Meta(Model.Meta):
        table = "submissions"
        unique_together = (
            ("account_id", "challenge", "sha256", "scorer_version", "truth_version", "participant"),
        )
        indexes = (
            ("challenge", "truth_version", "rank_score", "submitted_at", "id"),
            ("challenge", "truth_version", "represents", "rank_score", "submitted_at", "id"),
            ("challenge", "participant", "submitted_at"),
            ("challenge", "truth_version", "hub_username", "rank_score"),
            ("challenge", "truth_version", "model_repo", "rank_score"),
            ("submitted_at", "id"),
            ("task", "submitted_at", "id"),
            ("account_id", "submitted_at", "id"),
        )


class Evaluation(Model):
    """A model that the platform runs on the events of a challenge, and how far that is."""

    id = fields.CharField(max_length=32, primary_key=True)
    challenge = fields.CharField(max_length=64)
    task = fields.CharField(max_length=64)
    account_id = fields.BigIntField()
    hub_username = fields.CharField(max_length=96)
    participant = fields.CharField(max_length=48)
    # Of the file, which is in the storage; with the manifest it is the model.
    sha256 = fields.CharField(max_length=64)
    size_bytes = fields.BigIntField()
    # Empty: the file is not kept any more.
    manifest = fields.TextField()
    model_repo = fields.CharField(max_length=200, null=True)
    model_claim = fields.CharField(max_length=16, null=True)
    scorer_version = fields.CharField(max_length=32)
    truth_version = fields.CharField(max_length=64)
    # ``received``, ``checking``, ``running``, ``scored``, ``failed``, ``cancelled``.
    state = fields.CharField(max_length=16, default="received")
    # Why it failed.
    code = fields.CharField(max_length=32, null=True)
    # What was wrong with the model itself; of hidden events never anything.
    detail = fields.CharField(max_length=500, default="")
    received_at = fields.DatetimeField()
    checking_at = fields.DatetimeField(null=True)
    running_at = fields.DatetimeField(null=True)
    ended_at = fields.DatetimeField(null=True)
    events = fields.IntField()
    events_done = fields.IntField(default=0)
    # Size and graph, as it was counted; measured blocks of time.
    facts: Any = fields.JSONField(null=True)
    timed: Any = fields.JSONField(default=list)
    submission_id = fields.CharField(max_length=32, null=True)
    # Whether it runs the model of that submission once more, on events of another truth version.
    again = fields.BooleanField(default=False)
    # Whether those events are public: the scores are compared, and never count.
    public = fields.BooleanField(default=False)
    # SHA-256 of what the model has predicted. None: it is not scored.
    predictions = fields.CharField(max_length=64, null=True)
    # Credits that were charged for it, and are given back where it is not run by no fault of the model.
    price = fields.DecimalField(max_digits=18, decimal_places=3, default=Decimal(0))
    # How many evaluations of its account came before it in a day: the fewer, the sooner. None: it has ended.
    turn = fields.IntField(null=True)
    # When it is taken next: while a process works on it, when that one's lease ends.
    due_at = fields.DatetimeField(null=True)
    lease = fields.CharField(max_length=32, default="")
    # Where it was taken last.
    machine = fields.CharField(max_length=64, default="")
    # Processes that have begun a step and not ended it.
    attempts = fields.IntField(default=0)

    class Meta(Model.Meta):
        table = "evaluations"
        indexes = (
            ("turn", "due_at", "challenge"),
            ("challenge", "turn", "received_at"),
            ("challenge", "participant", "received_at"),
            ("account_id", "received_at", "id"),
            ("submission_id",),
            ("sha256",),
        )


class Scoring(Model):
    """What one scorer made of a submission against one truth. What counts stands in its row, too."""

    id = fields.BigIntField(primary_key=True)
    submission_id = fields.CharField(max_length=32)
    scorer_version = fields.CharField(max_length=32)
    truth_version = fields.CharField(max_length=64)
    scores: Any = fields.JSONField()
    uncertainties: Any = fields.JSONField(null=True)
    # Metrics of resampled events, by which gains are judged. Never shown.
    replicates: Any = fields.JSONField(null=True)
    # The same of the primary metric, larger is better, as float32: ranks of thousands are compared.
    primary_draws = fields.BinaryField(null=True)
    # Scores in bins. None for what was scored before there were any.
    curves: Any = fields.JSONField(null=True)
    warnings: Any = fields.JSONField(default=list)
    scored_at = fields.DatetimeField()
    # When the scores became those of the submission. None: they were only tried.
    applied_at = fields.DatetimeField(null=True)

    class Meta(Model.Meta):
        table = "scorings"
        unique_together = (("submission_id", "scorer_version", "truth_version"),)


class Rescoring(Model):
    """The last order of an operator to score the submissions to a challenge again, and what became of it."""

    challenge = fields.CharField(max_length=64, primary_key=True)
    # So many per cent of the events are to be the public part. None: the truth stays.
    public_percent = fields.IntField(null=True)
    # Whether the new scores come into force, and bests are paid. Not: only what would change is found.
    applies = fields.BooleanField()
    pays = fields.BooleanField()
    # For the audit log; empty when it has ended.
    actor = fields.CharField(max_length=96)
    http_request_id = fields.CharField(max_length=64)
    asked_at = fields.DatetimeField()
    # Submissions scored, and to be scored.
    done = fields.IntField(default=0)
    submissions = fields.IntField(default=0)
    ended_at = fields.DatetimeField(null=True)
    # Why it failed. Empty: it did not.
    problem = fields.TextField(default="")
    # What changes, and why submissions could not be scored, by their ids.
    changes: Any = fields.JSONField(default=list)
    unscored: Any = fields.JSONField(default=dict)
    # Held by the process that works on it; free, or from a killed process, when its time is over.
    lease = fields.CharField(max_length=32, default="")
    leased_until = fields.DatetimeField()

    class Meta(Model.Meta):
        table = "rescorings"


class Best(Model):
    """The best value of a metric so far, which only ever gets better."""

    id = fields.BigIntField(primary_key=True)
    challenge = fields.CharField(max_length=64)
    truth_version = fields.CharField(max_length=64)
    metric = fields.CharField(max_length=64)
    value = fields.FloatField()
    submission_id = fields.CharField(max_length=32)

    class Meta(Model.Meta):
        table = "benchmark_bests"
        unique_together = (("challenge", "truth_version", "metric"),)
