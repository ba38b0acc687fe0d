"""Two submissions to the same task, metric by metric, with the error of each difference."""

from __future__ import annotations

from math import hypot
from typing import TYPE_CHECKING

from collidium import records
from collidium.benchmarks.submissions import reading, scorings
from collidium.errors import InvalidInput
from collidium.scoring.uncertainty import standard_error_of_gain

if TYPE_CHECKING:
    from collidium.benchmarks.models import Submission
    from collidium.scoring.uncertainty import Replicates


async def compare(submission_id: str, other_id: str) -> records.Comparison:
    """The differences of two submissions, the first less the other, in the metrics that both have.

    Where both were scored by the same scorer on the same events, what they owe to the choice of events
    cancels in the error. That of models has one digit. Raises NotFound, and InvalidInput for other tasks.
    """
    rows = await reading.row_of(submission_id), await reading.row_of(other_id)
    one, other = rows
    if one.task != other.task:
        raise InvalidInput(f"{submission_id} is of {one.task}, and {other_id} of {other.task}")
    versions = {(row.scorer_version, row.truth_version) for row in rows}
    draws = [await scorings.replicates_of(row.id, row.scorer_version, row.truth_version) for row in rows]
    found = {}
    for name in one.scores.keys() & other.scores.keys():
        paired = len(versions) == 1 and all(name in of for of in draws)
        found[name] = records.Difference(
            value=one.scores[name] - other.scores[name],
            uncertainty=_error(name, rows, draws if paired else None),
            paired=paired,
        )
    return records.Comparison(
        submission_id=one.id,
        other_id=other.id,
        differences={name: found[name] for name in one.scores if name in found},
    )


def _error(name: str, rows: tuple[Submission, Submission], draws: list[Replicates] | None) -> float | None:
    """The error of a difference, of pairs of draws where there are; None where one is not known."""
    errors = [(row.uncertainties or {}).get(name) for row in rows]
    if draws is not None:
        error = standard_error_of_gain(*(of[name] for of in draws))
    elif errors[0] is None or errors[1] is None:
        return None
    else:
        error = hypot(errors[0], errors[1])
    digits = 0 if any(row.evaluation_id for row in rows) else 1
    return float(f"{error:.{digits}e}")
