"""Indexes by which lists are read from where a page begins, in the order in which they are shown.

Those in SQL have a descending column or an expression, which Tortoise's indexes cannot have: the order of
leaderboards, which is descending by score and ascending by time, and of accounts by credits, which SQLite keeps as text.
"""

from tortoise import migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps

_BEST_FIRST = "rank_score DESC, submitted_at, id"


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    credits_ = "CAST(credits AS NUMERIC)" if editor.DIALECT == "sqlite" else "credits"
    for statement in (
        f"CREATE INDEX submissions_best_first ON submissions (challenge, truth_version, {_BEST_FIRST})",
        "CREATE INDEX submissions_representing ON submissions "
        f"(challenge, truth_version, represents, {_BEST_FIRST})",
        f"CREATE INDEX accounts_by_credits ON accounts ({credits_}, id)",
    ):
        await editor.client.execute_script(statement)


class Migration(migrations.Migration):
    dependencies = [("collidium", "0004_raised_best")]

    operations = [
        ops.RemoveIndex(
            "Submission", fields=["challenge", "truth_version", "rank_score", "submitted_at", "id"]
        ),
        ops.RemoveIndex(
            "Submission",
            fields=["challenge", "truth_version", "represents", "rank_score", "submitted_at", "id"],
        ),
        ops.AddIndex("Submission", Index(fields=["challenge", "submitted_at", "id"])),
        ops.AddIndex("Submission", Index(fields=["challenge", "standing", "submitted_at", "id"])),
        ops.AddIndex("Account", Index(fields=["banned", "id"])),
        ops.AddIndex("Account", Index(fields=["banned", "name_key"])),
        ops.RunPython(_forward),
    ]
