"""Public datasets of a truth in the database, and public truth."""

from __future__ import annotations

from typing import Any

import pytest

from collidium.challenges import truth_in_use
from collidium.challenges.models import Challenge
from collidium.errors import Conflict
from collidium.scoring.truth.parts import ScoredTruth
from collidium.truth import registry
from collidium.truth.models import TruthVersion
from collidium.truth.registry import PreparedTruth

MANIFEST: dict[str, Any] = {
    "task": "jets",
    "version": "0123456789ab",
    "dataset": "ttbar_pu0",
    "revision": "local",
    "events": {"start": 0, "stop": 9},
    "floors": {},
    "tables": {},
    "blocks": [],
}


@pytest.mark.usefixtures("connected")
async def test_data_is_kept_with_its_truth_and_renewed_alone() -> None:
    async def imported(**data: Any) -> Any:
        prepared = PreparedTruth(MANIFEST, "0" * 64, data, {})
        return (await truth_in_use.keep(prepared, current=True, public=False)).data

    assert await imported() == {}
    assert await imported(evaluation={"repository": "a/b"}) == {"evaluation": {"repository": "a/b"}}
    # A public phase has a truth of its own, of the same events.
    part = ScoredTruth(MANIFEST["version"]).part("public", 30)
    whole = await TruthVersion.get(version=MANIFEST["version"])
    await TruthVersion.create(task="jets", version=part, manifest=whole.manifest)
    await Challenge.filter(name="jets").update(truth_version=part)
    both = {"evaluation": {"repository": "a/b"}, "training": {"repository": "a/c"}}
    assert await imported(training={"repository": "a/c"}) == both
    assert await imported() == both
    assert (await registry.find("jets", part)).data == both


@pytest.mark.usefixtures("connected")
async def test_truth_that_counts_is_not_public() -> None:
    """Scores on public events are exact, so hidden events must not become public."""
    await truth_in_use.keep(PreparedTruth(MANIFEST, "0" * 64, {}, {}), current=True, public=False)
    part = ScoredTruth(MANIFEST["version"]).part("public", 30)
    await Challenge.filter(name="jets").update(truth_version=part)
    with pytest.raises(Conflict, match="score against"):
        await truth_in_use.keep(PreparedTruth(MANIFEST, "0" * 64, {}, {}), current=False, public=True)
    other = {**MANIFEST, "version": "ba9876543210"}
    await truth_in_use.keep(PreparedTruth(other, "0" * 64, {}, {}), current=False, public=True)
    with pytest.raises(Conflict, match="public"):
        await registry.find_whole("jets", other["version"])
    await truth_in_use.keep(PreparedTruth(other, "0" * 64, {}, {}), current=False, public=False)
    assert (await registry.find_whole("jets", other["version"])).version == other["version"]
