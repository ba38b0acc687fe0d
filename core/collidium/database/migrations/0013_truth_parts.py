"""Versions of truth have columns for what their text says, so that no query searches in it."""

import re

from tortoise import fields, migrations
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script("UPDATE truth_versions SET whole = version")
    _, rows = await editor.client.execute_query("SELECT id, version FROM truth_versions")
    for row in rows:
        if part := re.fullmatch(r"([0-9a-f]+)-(public|final)[0-9]{1,2}", row["version"]):
            await editor.client.execute_script(
                f"UPDATE truth_versions SET whole = '{part[1]}', kind = '{part[2]}' WHERE id = {row['id']}"  # noqa: S608 -- as matched
            )


class Migration(migrations.Migration):
    dependencies = [("collidium", "0012_model_files")]

    operations = [
        ops.AddField("TruthVersion", "whole", fields.CharField(max_length=64, db_default="")),
        ops.AddField("TruthVersion", "kind", fields.CharField(max_length=8, null=True)),
        ops.RunPython(_forward),
    ]
