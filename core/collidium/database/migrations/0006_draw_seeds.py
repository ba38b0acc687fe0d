"""Secret seeds of the draws for standard errors; scores of earlier releases keep the public draws."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0005_long_lists")]

    operations = [
        ops.CreateModel(
            "DrawSeed",
            [
                ("id", fields.BigIntField(primary_key=True, generated=True)),
                ("task", fields.CharField(max_length=64)),
                ("truth_version", fields.CharField(max_length=64)),
                ("seed", fields.CharField(max_length=64)),
            ],
            {
                "table": "draw_seeds",
                "app": "collidium",
                "unique_together": (("task", "truth_version"),),
                "pk_attr": "id",
                "table_description": (
                    "The secret seed of the draws for standard errors of all scores against a version of truth."
                ),
            },
        ),
        ops.AddField("Scoring", "seed", fields.CharField(max_length=64, default="", db_default="")),
        ops.RunSQL(
            "INSERT INTO draw_seeds (task, truth_version, seed) "
            "SELECT task, truth_version, '' FROM submissions UNION SELECT s.task, c.truth_version, '' "
            "FROM scorings c JOIN submissions s ON s.id = c.submission_id"
        ),
    ]
