"""Standard errors of scores, what each scorer made of a submission, and when it was verified."""

import functools
from json import dumps, loads

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0004_simulations")]

    operations = [
        ops.CreateModel(
            name="Scoring",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("submission_id", fields.CharField(max_length=32)),
                ("scorer_version", fields.CharField(max_length=32)),
                ("truth_version", fields.CharField(max_length=64)),
                (
                    "scores",
                    fields.JSONField(encoder=functools.partial(dumps, separators=(",", ":")), decoder=loads),
                ),
                (
                    "uncertainties",
                    fields.JSONField(
                        null=True, encoder=functools.partial(dumps, separators=(",", ":")), decoder=loads
                    ),
                ),
                (
                    "replicates",
                    fields.JSONField(
                        null=True,
                        description="Metrics of resampled events, by which gains are judged. Never shown.",
                        encoder=functools.partial(dumps, separators=(",", ":")),
                        decoder=loads,
                    ),
                ),
                (
                    "warnings",
                    fields.JSONField(
                        default=list, encoder=functools.partial(dumps, separators=(",", ":")), decoder=loads
                    ),
                ),
                ("scored_at", fields.DatetimeField(auto_now=False, auto_now_add=False)),
                (
                    "applied_at",
                    fields.DatetimeField(
                        null=True,
                        description="When the scores became those of the submission. None: they were only tried.",
                        auto_now=False,
                        auto_now_add=False,
                    ),
                ),
            ],
            options={
                "table": "scorings",
                "app": "collidium",
                "unique_together": (("submission_id", "scorer_version", "truth_version"),),
                "pk_attr": "id",
                "table_description": "What one scorer made of a submission against one truth. What counts stands in its row, too.",
            },
            bases=["Model"],
        ),
        ops.AddField(
            model_name="Submission",
            name="uncertainties",
            field=fields.JSONField(
                null=True,
                description="Standard errors by metric. None for what was scored before there were any.",
                encoder=functools.partial(dumps, separators=(",", ":")),
                decoder=loads,
            ),
        ),
        ops.AddField(
            model_name="Submission",
            name="verified_at",
            field=fields.DatetimeField(
                null=True,
                description="When an operator verified what the submitter measured. None: nobody has.",
                auto_now=False,
                auto_now_add=False,
            ),
        ),
    ]
