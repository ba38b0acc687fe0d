"""Idempotency keys of orders and of operator actions in one table; those from before are forgotten."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0001_initial")]

    operations = [
        ops.DeleteModel("IdempotencyKey"),
        ops.CreateModel(
            name="IdempotencyKey",
            fields=[
                ("id", fields.BigIntField(generated=True, primary_key=True, unique=True, db_index=True)),
                ("owner", fields.CharField(description="An account or an operator.", max_length=128)),
                ("key", fields.CharField(max_length=128)),
                (
                    "question",
                    fields.CharField(
                        description="The sha256 of what was asked: the same key with another question is refused.",
                        max_length=64,
                    ),
                ),
                ("answer", fields.TextField(description="JSON.", null=True, unique=False)),
            ],
            options={
                "table": "idempotency_keys",
                "app": "collidium",
                "unique_together": (("owner", "key"),),
                "pk_attr": "id",
                "table_description": "The answer that a key of an owner was given, None while what was asked is being done.",
            },
            bases=["Model"],
        ),
    ]
