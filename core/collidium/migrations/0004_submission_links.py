"""Links of a submission to code and paper, and what is known of its claim to a model."""

from tortoise import fields, migrations
from tortoise.migrations import operations as ops


class Migration(migrations.Migration):
    dependencies = [("collidium", "0003_delivery_hosts")]

    operations = [
        ops.AddField(
            model_name="Submission",
            name="model_claim",
            field=fields.CharField(
                null=True,
                description="What is known of the submitter's claim to that repository. None: no model, or it was never checked.",
                max_length=16,
            ),
        ),
        ops.AddField(
            model_name="Submission", name="code_url", field=fields.CharField(null=True, max_length=500)
        ),
        ops.AddField(
            model_name="Submission", name="paper_url", field=fields.CharField(null=True, max_length=500)
        ),
    ]
