"""Indices for the places of one account, or of one model, on a leaderboard."""

from tortoise import migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0006_operation")]

    operations = [
        ops.AddIndex(
            model_name="Submission",
            index=Index(fields=["task", "truth_version", name, "rank_score"]),
        )
        for name in ("hub_username", "model_repo")
    ]
