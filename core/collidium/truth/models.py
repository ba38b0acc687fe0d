"""The tables of truth, which only this package reads and writes."""

from __future__ import annotations

from typing import Any

from tortoise import fields
from tortoise.models import Model

from collidium.scoring.truth.parts import ScoredTruth
from collidium.truth.columns import ScoredTruthField


class TruthVersion(Model):
    """Truth that was imported for a task (its files lie in the data directory and are never served)."""

    id = fields.BigIntField(primary_key=True)
    task = fields.CharField(max_length=64)
    version = ScoredTruthField[ScoredTruth]()
    # What the version says, for queries: its whole truth, and ``public`` or ``final`` for a part of it.
    whole = ScoredTruthField[ScoredTruth](db_default="")
    kind = fields.CharField(max_length=8, null=True)
    # Also the hashes of its tables and of the inputs of models.
    manifest: Any = fields.JSONField()
    # The hash of its manifest in the storage; None: imported before it was kept, and not read since.
    manifest_sha256 = fields.CharField(max_length=64, null=True)
    imported_at = fields.DatetimeField(auto_now_add=True)

    class Meta(Model.Meta):
        table = "truth_versions"
        unique_together = (("task", "version"),)

    def __init__(self, **values: Any) -> None:
        super().__init__(**values)
        self.whole, self.kind = self.version.whole, self.version.kind


class DrawSeed(Model):
    """The secret seed of the draws for standard errors of all scores against a version of truth."""

    id = fields.BigIntField(primary_key=True)
    task = fields.CharField(max_length=64)
    truth_version = ScoredTruthField[ScoredTruth]()
    # Empty: scored by an earlier release, by public draws.
    seed = fields.CharField(max_length=64)

    class Meta(Model.Meta):
        table = "draw_seeds"
        unique_together = (("task", "truth_version"),)
