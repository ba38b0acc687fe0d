"""An order is kept whole, as JSON; of its fields only those that are searched for keep columns."""

from typing import Any

from tortoise import fields, migrations
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps


class _DropColumn(ops.RemoveField):
    """Drop a column in place: Tortoise would replace the table, which drops its triggers."""

    async def database_forward(
        self, app_label: str, old_state: Any, new_state: Any, state_editor: BaseSchemaEditor | None = None
    ) -> None:
        if state_editor is not None:
            await state_editor.client.execute_script(
                f"ALTER TABLE simulation_requests DROP COLUMN {self.name}"
            )


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    build = "json_object({})" if editor.DIALECT == "sqlite" else "json_build_object({})::text"
    names = ("channel", "events", "pileup", "seed", "vary")
    order = build.format(", ".join(f"'{name}', {name}" for name in names))
    await editor.client.execute_script(f"UPDATE simulation_requests SET order_json = {order}")  # noqa: S608 -- constants


class Migration(migrations.Migration):
    dependencies = [("collidium", "0009_roster")]

    operations = [
        ops.AddField("SimulationRequest", "order_json", fields.TextField(db_default="{}")),
        ops.RunPython(_forward),
        *(_DropColumn("SimulationRequest", name) for name in ("events", "pileup", "vary")),
    ]
