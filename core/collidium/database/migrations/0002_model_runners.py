"""A table of the processes that run models."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0001_initial")]

    operations = [
        ops.CreateModel(
            "ModelRunner",
            [
                ("process", fields.CharField(max_length=128, primary_key=True)),
                ("looked_at", fields.DatetimeField(db_index=True)),
                ("reason", fields.CharField(max_length=400, default="")),
            ],
            {
                "table": "model_runners",
                "app": "collidium",
                "pk_attr": "process",
                "table_description": "A process that runs models, or why it does not, and when it recorded so.",
            },
        ),
    ]
