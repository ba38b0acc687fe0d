"""For operators: refunds of what failed, why submissions are frozen, who follows requests, indices of their lists."""

from tortoise import fields, migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops
from tortoise.migrations.schema_editor import BaseSchemaEditor
from tortoise.migrations.schema_generator.state_apps import StateApps

#: How a request ended is never changed, but for one thing: of what failed, more can be given back.
SQLITE = """
DROP TRIGGER request_has_ended;
CREATE TRIGGER request_has_ended BEFORE UPDATE ON simulation_requests
WHEN OLD.state IN ('completed', 'failed', 'cancelled') AND (
    NEW.state <> OLD.state OR NEW.credits_charged <> OLD.credits_charged OR NEW.step <> ''
    OR CAST(NEW.credits_refunded AS NUMERIC) < CAST(OLD.credits_refunded AS NUMERIC)
    OR (NEW.credits_refunded <> OLD.credits_refunded AND OLD.state <> 'failed'))
BEGIN SELECT RAISE(ABORT, 'the request has ended'); END;
"""

POSTGRESQL = """
DROP TRIGGER request_has_ended ON simulation_requests;
CREATE TRIGGER request_has_ended BEFORE UPDATE ON simulation_requests FOR EACH ROW
WHEN (OLD.state IN ('completed', 'failed', 'cancelled') AND (
    NEW.state <> OLD.state OR NEW.credits_charged <> OLD.credits_charged OR NEW.step <> ''
    OR NEW.credits_refunded < OLD.credits_refunded
    OR (NEW.credits_refunded <> OLD.credits_refunded AND OLD.state <> 'failed')))
EXECUTE FUNCTION request_has_ended();
"""

SQLITE_BACK = """
DROP TRIGGER request_has_ended;
CREATE TRIGGER request_has_ended BEFORE UPDATE ON simulation_requests
WHEN OLD.state IN ('completed', 'failed', 'cancelled') AND (
    NEW.state <> OLD.state OR NEW.credits_charged <> OLD.credits_charged
    OR NEW.credits_refunded <> OLD.credits_refunded OR NEW.step <> '')
BEGIN SELECT RAISE(ABORT, 'the request has ended'); END;
"""

POSTGRESQL_BACK = """
DROP TRIGGER request_has_ended ON simulation_requests;
CREATE TRIGGER request_has_ended BEFORE UPDATE ON simulation_requests FOR EACH ROW
WHEN (OLD.state IN ('completed', 'failed', 'cancelled') AND (
    NEW.state <> OLD.state OR NEW.credits_charged <> OLD.credits_charged
    OR NEW.credits_refunded <> OLD.credits_refunded OR NEW.step <> ''))
EXECUTE FUNCTION request_has_ended();
"""


async def _forward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(SQLITE if editor.DIALECT == "sqlite" else POSTGRESQL)


async def _backward(apps: StateApps, editor: BaseSchemaEditor) -> None:
    await editor.client.execute_script(SQLITE_BACK if editor.DIALECT == "sqlite" else POSTGRESQL_BACK)


class Migration(migrations.Migration):
    dependencies = [("collidium", "0005_scorings")]

    operations = [
        ops.CreateModel(
            name="Follower",
            fields=[
                (
                    "process",
                    fields.CharField(
                        primary_key=True,
                        unique=True,
                        db_index=True,
                        description="``<host>:<process id>``.",
                        max_length=128,
                    ),
                ),
                ("looked_at", fields.DatetimeField(db_index=True, auto_now=False, auto_now_add=False)),
            ],
            options={
                "table": "followers",
                "app": "collidium",
                "pk_attr": "process",
                "table_description": "A process that follows requests, and the moment since which every lane of it has looked for work.",
            },
            bases=["Model"],
        ),
        ops.AddIndex(
            model_name="CreditTransaction",
            index=Index(fields=["account_id", "id"]),
        ),
        ops.AddField(
            model_name="GlobalConfig",
            name="frozen_at",
            field=fields.DatetimeField(
                null=True,
                description="Since when, by whom and what for, while submissions are frozen.",
                auto_now=False,
                auto_now_add=False,
            ),
        ),
        ops.AddField(
            model_name="GlobalConfig",
            name="frozen_by",
            field=fields.CharField(null=True, max_length=96),
        ),
        ops.AddField(
            model_name="GlobalConfig",
            name="frozen_note",
            field=fields.CharField(null=True, max_length=1000),
        ),
        ops.AddIndex(
            model_name="SimulationRequest",
            index=Index(fields=["channel", "id"]),
        ),
        ops.AddIndex(
            model_name="SimulationRequest",
            index=Index(fields=["state", "finished_at"]),
        ),
        ops.AddIndex(
            model_name="Submission",
            index=Index(fields=["submitted_at", "id"]),
        ),
        ops.AddIndex(
            model_name="Submission",
            index=Index(fields=["task", "submitted_at", "id"]),
        ),
        ops.AddIndex(
            model_name="Submission",
            index=Index(fields=["account_id", "submitted_at", "id"]),
        ),
        ops.RunPython(_forward, _backward),
    ]
