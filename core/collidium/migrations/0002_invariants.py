"""What the database itself refuses: changing the ledger, and a balance below zero.

Written as triggers and checks by hand because the first migration drops constraints of a model's Meta.
"""

from tortoise import migrations
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps

SQLITE = """
CREATE TRIGGER ledger_no_update BEFORE UPDATE ON credit_transactions
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER ledger_no_delete BEFORE DELETE ON credit_transactions
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER balance_insert BEFORE INSERT ON accounts WHEN CAST(NEW.credits AS NUMERIC) < 0
BEGIN SELECT RAISE(ABORT, 'a balance below zero'); END;
CREATE TRIGGER balance_update BEFORE UPDATE ON accounts WHEN CAST(NEW.credits AS NUMERIC) < 0
BEGIN SELECT RAISE(ABORT, 'a balance below zero'); END;
INSERT INTO global_config (name, submissions_frozen, updated_at) VALUES ('platform', 0, CURRENT_TIMESTAMP);
"""

POSTGRESQL = """
CREATE FUNCTION ledger_append_only() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only' USING ERRCODE = 'integrity_constraint_violation'; END $$;
CREATE TRIGGER ledger_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON credit_transactions
FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only();
ALTER TABLE accounts ADD CONSTRAINT balance_not_negative CHECK (credits >= 0);
INSERT INTO global_config (name, submissions_frozen, updated_at) VALUES ('platform', false, now());
"""

SQLITE_BACK = """
DROP TRIGGER ledger_no_update;
DROP TRIGGER ledger_no_delete;
DROP TRIGGER balance_insert;
DROP TRIGGER balance_update;
DELETE FROM global_config WHERE name = 'platform';
"""

POSTGRESQL_BACK = """
DROP TRIGGER ledger_append_only ON credit_transactions;
DROP FUNCTION ledger_append_only();
ALTER TABLE accounts DROP CONSTRAINT balance_not_negative;
DELETE FROM global_config WHERE name = 'platform';
"""


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(SQLITE if editor.DIALECT == "sqlite" else POSTGRESQL)


async def _backward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(SQLITE_BACK if editor.DIALECT == "sqlite" else POSTGRESQL_BACK)


class Migration(migrations.Migration):
    dependencies = [("collidium", "0001_initial")]

    operations = [ops.RunPython(_forward, _backward)]
