"""An index by which a page of a challenge's roster reads the submissions of its participants alone."""

from tortoise import migrations
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(
        "CREATE INDEX submissions_by_name ON submissions (challenge, lower(hub_username), submitted_at)"
    )


class Migration(migrations.Migration):
    dependencies = [("collidium", "0008_outbox_reference")]

    operations = [ops.RunPython(_forward)]
