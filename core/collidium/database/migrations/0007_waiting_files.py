"""A table of files that cannot be scored again now."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0006_draw_seeds")]

    operations = [
        ops.CreateModel(
            "WaitingFile",
            [
                ("id", fields.BigIntField(primary_key=True, generated=True)),
                ("challenge", fields.CharField(max_length=64)),
                ("submission_id", fields.CharField(max_length=32)),
                ("scorer_version", fields.CharField(max_length=32)),
                ("truth_version", fields.CharField(max_length=64)),
                ("reason", fields.CharField(max_length=500)),
                ("since", fields.DatetimeField()),
                ("attempts", fields.IntField(default=0)),
                ("retry_at", fields.DatetimeField()),
                ("left_out_at", fields.DatetimeField(null=True)),
            ],
            {
                "table": "waiting_files",
                "app": "collidium",
                "unique_together": (("challenge", "submission_id", "scorer_version", "truth_version"),),
                "pk_attr": "id",
                "table_description": "A submission whose file cannot be scored now, for a rescoring or the end "
                "of its challenge.",
            },
        ),
    ]
