"""Format numbers with their uncertainties, durations and quotas for display."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Final

from collidium.records import Place, Submission

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collidium.contracts import card
    from collidium.records import LocalScores, Metric, Quota, Receipt, Rescoring, SplitPreview

#: Significant digits of a standard error, and of a number that has none.
ERROR_DIGITS: Final = 2
DIGITS: Final = 4
#: Powers of ten for which numbers are not written in scientific notation.
_WRITTEN_OUT: Final = range(-4, 9)

_UNITS: Final = {"days": 86_400, "hours": 3600, "minutes": 60}

_MINUS: Final = "\N{MINUS SIGN}"
_RAISED: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def written(value: float | None, error: float | None = None) -> str:
    """Format a number with its error, such as ``0.9123 ± 0.0042``: two digits of the error.

    Without an error a number has four digits, an integer all of its digits. None is a dash. Very large and
    very small numbers have a power of ten.
    """
    if value is None:
        return "—"
    number, deviation = Decimal(repr(float(value))), Decimal(repr(float(error))) if error else None
    power = max(number.adjusted() if number else -400, deviation.adjusted() if deviation else -400)
    if power == -400:
        return "0"
    if power in _WRITTEN_OUT:
        return _pair(number, deviation, "{} ± {}")
    scaled = number.scaleb(-power), None if deviation is None else deviation.scaleb(-power)
    return f"{_pair(*scaled, '({} ± {})')}\N{MULTIPLICATION SIGN}{power_of_ten(power)}"


def score_text(value: float | None, error: float | None, metric: Metric | card.Metric | None = None) -> str:
    """Format a score as :func:`written`; one whose error is unknown says so.

    A single event has no error, and a few that all score alike do not scatter. Self-reported metrics need
    none.
    """
    text = written(value, error)
    if value is None or error or metric is None or metric.self_reported:
        return text
    return f"{text} (error unknown)"


def submitted_score(
    scored: Place | Submission | Receipt | LocalScores,
    name: str,
    metrics: Iterable[Metric | card.Metric],
) -> str:
    """Format a score of a submission by the metrics of its task, which also decide what is said about it.

    Says that an error is unknown, and where a self-reported score of a submission comes from.
    """
    metric = next((metric for metric in metrics if metric.name == name), None)
    text = score_text(scored.scores.get(name), scored.uncertainties.get(name), metric)
    if metric is None or not metric.self_reported or name not in scored.scores:
        return text
    return f"{text} ({origin_of(scored)})" if isinstance(scored, Place | Submission) else text


def rank_text(place: Place) -> str:
    """The rank of a place; a dash for baselines, which take none."""
    return "\N{EM DASH}" if place.baseline else f"{place.rank:,}"


def origin_of(scored: Place | Submission) -> str:
    """Where its measurements come from: ``measured`` by the platform, ``verified``, or ``self-reported``."""
    return "measured" if scored.model else "verified" if scored.verified_at else "self-reported"


def team_word(name: str) -> str:
    """Return ``team`` and a space as a prefix for a team's name, unless the name begins with it."""
    return "" if name.casefold().startswith("team") else "team "


def time_until(moment: datetime) -> str:
    """Format the time until a moment in whole days, hours or minutes: ``3 days``, ``12 minutes``."""
    seconds = int((moment - datetime.now(UTC)).total_seconds())
    for unit, length in _UNITS.items():
        if (count := seconds // length) >= 2:
            return f"{count} {unit}"
    return "less than 2 minutes" if seconds > 0 else "no time"


def quota_text(quota: Quota) -> str:
    """Describe how many submissions are left, and until when."""
    if quota.state == "upcoming":
        return (
            f"it opens on {_minute(quota.opens_at)}, with {quota.submissions_per_day} submissions a day then"
        )
    if quota.state == "closed":
        return f"it closed on {_minute(quota.closes_at)}"
    if quota.reason:
        return f"it accepts no submissions: {quota.reason}"
    text = f"{quota.submissions_left} of {quota.submissions_per_day} submissions are left today"
    if quota.state == "practice":
        return f"{text}, for practice: it closed on {_minute(quota.closes_at)}"
    if quota.closes_at is None:
        return text
    return f"{text}; it closes on {_minute(quota.closes_at)}, in {time_until(quota.closes_at)}"


def split_texts(found: Rescoring) -> list[str]:
    """Return what a rescoring with a new split changes, and a warning; empty without a split."""
    if found.public_percent is None:
        return []
    part = f"Scores are those on {found.public_percent} per cent of the events until the challenge closes"
    texts = [f"{part}, those on the others then. This cannot be undone."]
    if found.seen_whole:
        texts.append(
            f"Warning: participants have seen scores of {found.seen_whole:,} submissions on all events, "
            "those of the final part included."
        )
    return texts


def closing_text(preview: SplitPreview) -> str:
    """Describe which tasks and challenges a public part closes to submissions; empty if none."""
    if not preview.closes:
        return ""
    until = f"closes on {_minute(preview.until)}" if preview.until else "is closed by command"
    closed = ", ".join(preview.closes)
    return (
        f"With {preview.public_percent} per cent public, {closed} will accept no submissions until "
        f"{preview.challenge} {until}: its scores would reveal the events that are held back."
    )


def _minute(moment: datetime | None) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else "a day that was not set"


def power_of_ten(power: int) -> str:
    """Format ``-3`` as ``10⁻³``."""
    return f"10{str(power).translate(_RAISED)}"


def _pair(value: Decimal, error: Decimal | None, form: str) -> str:
    if error is None:
        if value == value.to_integral_value():
            return _rounded(value, 0)
        return _rounded(value, value.adjusted() - DIGITS + 1)
    place = error.adjusted() - ERROR_DIGITS + 1
    place = error.quantize(Decimal(1).scaleb(place)).adjusted() - ERROR_DIGITS + 1  # 0.0999 rounds to 0.10
    return form.format(_rounded(value, place), _rounded(error, place))


def _rounded(value: Decimal, place: int) -> str:
    """Round to a power of ten and format with thousands separators."""
    # A double has no more digits than that.
    exact = value.quantize(Decimal(1).scaleb(max(place, -17)), rounding=ROUND_HALF_EVEN)
    return f"{exact:,f}".replace("-", _MINUS)
