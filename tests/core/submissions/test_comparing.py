"""Comparisons of two submissions: common fluctuations cancel in the error of the difference."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from collidium.errors import InvalidInput, NotFound
from collidium.submissions import reading
from collidium.submissions.models import Scoring, Submission

#: Of the events that were drawn, which both have.
SHARED = np.random.default_rng(1).normal(0, 0.02, 200)
OWN = np.random.default_rng(2).normal(0, 0.001, 200)


async def keep(
    number: int,
    draws: object,
    *,
    truth: str = "t",
    model: bool = False,
    of: str = "jets",
    seed: str = "",
) -> str:
    row = await Submission.create(
        id=f"{number:032x}",
        challenge=of,
        task=of,
        account_id=number,
        hub_username=f"user-{number}",
        participant=f"account:{number}",
        sha256="",
        size_bytes=1,
        rows=1,
        scores={"btag_auc": 0.9 - number / 100, "n_params": 10.0 * number},
        uncertainties={"btag_auc": 0.02},
        evaluation_id=f"{number:032x}" if model else None,
        scorer_version="1",
        truth_version=truth,
        submitted_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    replicates = {} if draws is None else {"btag_auc": list(np.asarray(draws))}
    await Scoring.create(
        submission_id=row.id,
        scorer_version="1",
        truth_version=truth,
        scores=row.scores,
        replicates=replicates,
        seed=seed,
        scored_at=row.submitted_at,
    )
    return str(row.id)


@pytest.mark.usefixtures("connected")
async def test_the_error_of_a_difference_is_of_pairs_of_draws() -> None:
    one, same = await keep(1, SHARED), await keep(2, SHARED + OWN)
    other_truth, undrawn = await keep(3, SHARED, truth="u"), await keep(4, None)
    model = await keep(5, SHARED + OWN, model=True)
    foreign = await keep(6, SHARED, of="anomaly")
    paired = (await reading.compare(one, same)).differences
    assert paired["btag_auc"].value == pytest.approx(0.01)
    assert paired["btag_auc"].uncertainty == pytest.approx(np.std(OWN, ddof=1), rel=0.05)
    assert paired["btag_auc"].paired
    assert (paired["n_params"].value, paired["n_params"].uncertainty) == (-10.0, None)
    otherwise_drawn = await keep(7, SHARED + OWN, seed="secret")
    for other in (other_truth, undrawn, otherwise_drawn):
        apart = (await reading.compare(one, other)).differences["btag_auc"]
        assert (apart.uncertainty, apart.paired) == (pytest.approx(0.028), False)
    rounded = (await reading.compare(one, model)).differences["btag_auc"]
    assert rounded.uncertainty == 0.001, "one digit"
    with pytest.raises(InvalidInput, match="anomaly"):
        await reading.compare(one, foreign)
    with pytest.raises(NotFound):
        await reading.compare(one, "0" * 32)
