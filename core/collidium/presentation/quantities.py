"""Format numbers with their uncertainties, durations and times for display."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

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


def size_text(count: int) -> str:
    """Format a size: ``12.3 MB``."""
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def duration_text(seconds: float) -> str:
    """Format a duration: 4 s, 3 min, 2 h 10 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def amount_text(value: Decimal) -> str:
    """Format credits or node-hours exactly, with thousands separators."""
    return f"{value.normalize():,f}"


def credits_text(value: Decimal | None) -> str:
    """Format an amount of credits with its unit: ``1 credit``, ``2.5 credits``; None is a dash."""
    if value is None:
        return "—"
    return f"{amount_text(value)} {'credit' if value == 1 else 'credits'}"


def value_text(value: object) -> str:
    """Format a value by its type; None and an empty text are a dash."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return minute_text(value)
    if isinstance(value, Decimal):
        return amount_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return written(value)
    return str(value or "—")


def time_until(moment: datetime) -> str:
    """Format the time until a moment in whole days, hours or minutes: ``3 days``, ``12 minutes``."""
    seconds = int((moment - datetime.now(UTC)).total_seconds())
    for unit, length in _UNITS.items():
        if (count := seconds // length) >= 2:
            return f"{count} {unit}"
    return "less than 2 minutes" if seconds > 0 else "no time"


def minute_text(moment: datetime | None) -> str:
    """Format a time, which is in UTC, to the minute."""
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
