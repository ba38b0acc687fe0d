"""The hash of a truth's manifest; those of earlier imports get theirs when the manifest is read again."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0002_model_runners")]

    operations = [
        ops.AddField("TruthVersion", "manifest_sha256", fields.CharField(max_length=64, null=True)),
    ]
