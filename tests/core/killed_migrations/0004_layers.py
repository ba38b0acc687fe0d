"""The sums of each layer, whose table has no model."""

from tortoise import migrations
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps

SCRIPT = """
CREATE TABLE layers (layer INT PRIMARY KEY, clusters BIGINT NOT NULL, charge BIGINT NOT NULL);
INSERT INTO layers SELECT layer, count(*), sum(charge) FROM clusters GROUP BY layer; -- each; once
"""


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(SCRIPT)


class Migration(migrations.Migration):
    dependencies = [("collidium", "0003_charge")]

    operations = [ops.RunPython(_forward)]
