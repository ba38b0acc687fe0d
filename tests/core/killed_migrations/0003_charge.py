"""The charge of a cluster, and an index by layer."""

from tortoise import fields, migrations
from tortoise.indexes import Index
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0002_clusters")]

    operations = [
        ops.AddField(model_name="Cluster", name="charge", field=fields.BigIntField(null=True)),
        ops.RunSQL("UPDATE clusters SET charge = id * 2"),
        ops.AddIndex(model_name="Cluster", index=Index(fields=["layer", "charge"])),
    ]
