"""Hits, which are never deleted."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps

SQLITE = """
CREATE TRIGGER hits_stay BEFORE DELETE ON hits
BEGIN SELECT RAISE(ABORT, 'hits stay; all of them'); END;
"""

POSTGRESQL = """
CREATE FUNCTION hits_stay() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'hits stay; all of them' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TRIGGER hits_stay BEFORE DELETE ON hits FOR EACH ROW EXECUTE FUNCTION hits_stay();
"""


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(SQLITE if editor.DIALECT == "sqlite" else POSTGRESQL)


class Migration(migrations.Migration):
    initial = True

    operations = [
        ops.CreateModel(
            name="Hit",
            fields=[("id", fields.BigIntField(primary_key=True)), ("layer", fields.IntField())],
            options={"table": "hits", "app": "collidium", "pk_attr": "id"},
        ),
        ops.RunPython(_forward),
    ]
