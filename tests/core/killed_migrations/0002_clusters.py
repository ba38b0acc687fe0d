"""A cluster for each hit."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps

COPY = "INSERT INTO clusters (id, layer) SELECT id, layer FROM hits;"

SQLITE = """
CREATE TRIGGER clusters_stay BEFORE DELETE ON clusters
BEGIN SELECT RAISE(ABORT, 'clusters stay'); SELECT 1; END;
"""

POSTGRESQL = """
CREATE TRIGGER clusters_stay BEFORE DELETE ON clusters FOR EACH ROW EXECUTE FUNCTION hits_stay();
"""


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(COPY + (SQLITE if editor.DIALECT == "sqlite" else POSTGRESQL))


class Migration(migrations.Migration):
    dependencies = [("collidium", "0001_hits")]

    operations = [
        ops.CreateModel(
            name="Cluster",
            fields=[("id", fields.BigIntField(primary_key=True)), ("layer", fields.IntField())],
            options={"table": "clusters", "app": "collidium", "pk_attr": "id"},
        ),
        ops.RunPython(_forward),
    ]
