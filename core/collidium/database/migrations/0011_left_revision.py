"""Submissions know the revision with which they lost their rank, so that histories need not be read again."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(
        "CREATE INDEX submissions_left ON submissions (challenge, left_revision) "
        "WHERE left_revision IS NOT NULL"
    )


class Migration(migrations.Migration):
    dependencies = [("collidium", "0010_order")]

    operations = [
        ops.AddField("Submission", "left_revision", fields.BigIntField(null=True)),
        ops.RunPython(_forward),
    ]
