"""Counts the collections of a request's output that a worker or a follower did not survive."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0007_selections")]

    operations = [
        ops.AddField(
            model_name="SimulationRequest",
            name="lost_collections",
            field=fields.IntField(
                default=0,
                db_default=0,
                description="Collections of its output that a worker, or the process that follows it, "
                "did not survive.",
            ),
        ),
    ]
