"""The host of each delivery: deliveries are made in turn by account and host, and wait for a host that fails."""

from tortoise import fields, migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0002_idempotency")]

    operations = [
        ops.AddField(
            model_name="Delivery",
            name="host",
            field=fields.CharField(
                default="",
                description="That of the URL. Empty for what was announced before hosts were kept.",
                max_length=255,
            ),
        ),
        ops.AddIndex(
            model_name="Delivery",
            index=Index(fields=["state", "account_id", "host", "next_attempt_at", "id"]),
        ),
    ]
