"""Events are found by their reference: confirmation links are counted by the address that they are sent to."""

from tortoise import migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0007_waiting_files")]

    operations = [ops.AddIndex("OutboxEvent", Index(fields=("reference",)))]
