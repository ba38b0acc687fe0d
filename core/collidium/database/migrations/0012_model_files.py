"""Files of models have rows; a deletion is no arrival without a challenge any more."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(
        "INSERT INTO model_files (sha256, deleting_until) "
        "SELECT sha256, MAX(leased_until) FROM arrivals WHERE challenge = '' AND sha256 IS NOT NULL "
        "GROUP BY sha256; "
        "DELETE FROM arrivals WHERE challenge = ''"
    )


class Migration(migrations.Migration):
    dependencies = [("collidium", "0011_left_revision")]

    operations = [
        ops.CreateModel(
            "ModelFile",
            [
                ("sha256", fields.CharField(max_length=64, primary_key=True)),
                ("deleting_until", fields.DatetimeField(null=True, db_index=True)),
            ],
            {
                "table": "model_files",
                "app": "collidium",
                "pk_attr": "sha256",
                "table_description": "The file of a model in the storage: who receives or deletes it locks its row.",
            },
        ),
        ops.RunPython(_forward),
    ]
