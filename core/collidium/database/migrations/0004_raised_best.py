"""Submissions know whether they raised a best, so that those that did not leave a leaderboard at little cost.

Null, of rows from before, is unknown: bests are decided once, which decides it for the whole leaderboard.
"""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0003_truth_manifest_hash")]

    operations = [ops.AddField("Submission", "raised_best", fields.BooleanField(null=True, default=False))]
